"""A table that embedding and output layer share is in the file once, whatever runs the layer."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from compiler import EdgeCompileConfig, export, to_edge
from compiler.emit.config import ExecutorchBackendConfig
from compiler.llm.config import LlmConfig, MethodConfig
from compiler.llm.export import export_llm, exported_llm
from runtime import Runtime
from tests.llm.configs import CACHE, CUSTOM, PROMPT, config
from tests.tools.forked import run_stock

ROWS = 2000
HALF = {**CACHE, "dtype_override": "fp16"}
FAMILIES: dict[str, LlmConfig] = {
    "nano": config("nano_gpt", CACHE, vocab_size=ROWS),  # its table is always shared
    "llama": config("llama3", CACHE, vocab_size=ROWS, tie_word_embeddings=True),
    "qwen2": config("qwen2_5_0_5b", CUSTOM, vocab_size=ROWS, tie_word_embeddings=True),
    "half": config("llama3", HALF, vocab_size=ROWS, tie_word_embeddings=True),
    "gemma": config("gemma", CACHE, vocab_size=ROWS, head_dim=16),
}
METHODS = (MethodConfig("prefill", export_seq_len=4), MethodConfig("decode", export_seq_len=1))
SCRIPT = """
import sys, torch
from executorch.extension.llm.custom_ops import custom_ops
from executorch.runtime import Runtime
method = Runtime.get().load_program(sys.argv[1]).load_method("forward")
found = method.execute([torch.tensor([[1, 5, 9]]), torch.tensor([0])])[0].clone()
torch.save(found, sys.argv[2])
"""


def _with(chosen: LlmConfig, *, xnnpack: bool = False, several: bool = False) -> LlmConfig:
    on = replace(chosen.backend.xnnpack, enabled=xnnpack)
    methods = METHODS if several else ()
    return replace(
        chosen,
        backend=replace(chosen.backend, xnnpack=on),
        multimethod=replace(chosen.multimethod, methods=methods),
    )


@pytest.mark.slow
@pytest.mark.parametrize("several", [False, True], ids=["one", "methods"])
@pytest.mark.parametrize("xnnpack", [False, True], ids=["portable", "xnnpack"])
@pytest.mark.parametrize("name", FAMILIES)
def test_a_shared_table_is_stored_once(name: str, *, xnnpack: bool, several: bool) -> None:
    chosen = _with(FAMILIES[name], xnnpack=xnnpack, several=several)
    model = exported_llm(chosen).model.module
    held = {one.data_ptr(): one for one in (*model.parameters(), *model.buffers())}.values()
    stored = sum(one.numel() * one.element_size() for one in held)
    table = ROWS * 32 * 2  # of the smallest, in halves
    assert len(export_llm(chosen).buffer) < stored + table


@pytest.mark.interop
@pytest.mark.slow
@pytest.mark.parametrize("name", [*FAMILIES])
def test_a_layer_that_reads_the_table_is_that_of_eager(name: str, tmp_path: Path) -> None:
    """On both runtimes."""
    built = export_llm(FAMILIES[name])
    plan: Any = built.executorch_program.execution_plan[0]
    assert "aten::linear" in {one.name for one in plan.operators}
    path, out = tmp_path / "model.pte", tmp_path / "out.pt"
    path.write_bytes(built.buffer)
    run_stock(["-c", SCRIPT, path, out])
    given = (torch.tensor([PROMPT[:3]]), torch.tensor([0]))
    (ours,) = Runtime.get().load_program(path).load_method("forward").execute([*given])
    with torch.no_grad():
        wanted = exported_llm(FAMILIES[name]).model.module(*given)
    error = 0.02 if name == "half" else 1e-5
    torch.testing.assert_close(ours, wanted, atol=error, rtol=error)
    torch.testing.assert_close(torch.load(out), wanted, atol=error, rtol=error)


class _Shares(torch.nn.Module):
    def __init__(self, *, looked_up: bool, bias: bool) -> None:
        super().__init__()
        self.table = torch.nn.Parameter(torch.randn(50, 8))
        self.bias = torch.nn.Parameter(torch.randn(50)) if bias else None
        self.looked_up = looked_up

    def forward(self, places: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        if self.looked_up:
            x = x + torch.nn.functional.embedding(places, self.table)
        return torch.nn.functional.linear(x, self.table, self.bias)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("looked_up", [False, True])
def test_only_weights_that_stay_are_read_as_they_are(*, looked_up: bool, bias: bool) -> None:
    torch.manual_seed(0)
    module = _Shares(looked_up=looked_up, bias=bias)
    given = (torch.tensor([3, 1]), torch.randn(2, 8))
    edge = to_edge(export(module, given), compile_config=EdgeCompileConfig())
    built = edge.to_executorch(ExecutorchBackendConfig(do_quant_fusion_and_const_prop=True))
    plan: Any = built.executorch_program.execution_plan[0]
    names = {one.name.partition("::")[2] for one in plan.operators}
    assert ("linear" in names) is looked_up
    assert "permute_copy" not in names
    (found,) = Runtime.get().load_program(built.buffer).load_method("forward").execute([*given])
    torch.testing.assert_close(found, module(*given), atol=1e-5, rtol=1e-5)
