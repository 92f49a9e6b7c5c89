"""The files of a model with an adapter: on the stock runtime, and what is said without one."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
import yaml
from torch.export import export

from compiler import ExecutorchBackendConfig, to_edge_transform_and_lower
from compiler.backends.xnnpack import XnnpackPartitioner
from compiler.interface.external_weights import mark_behind, mark_weights
from compiler.llm.model import build_model
from compiler.quantize.weights import WeightModes, quantize_weights
from runtime import Runtime
from tests.inspector.cli_runs import run
from tests.llm.configs import CACHE, LENGTHS, PROMPT, SMALL, config, generated
from tests.llm.test_lora import ATTENTION, halves_of, merged, written_adapter
from tests.tools.forked import run_stock

pytestmark = pytest.mark.slow
COUNT = 12
SCRIPT = """
import json, sys, torch
import executorch.kernels.quantized
from executorch.extension.pybindings import portable_lib

path, prompt, count, answer = sys.argv[1], json.loads(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
method = portable_lib._load_for_executorch(path)
now, place, found = list(prompt), 0, []
for _ in range(count):
    logits = method.run_method("forward", [torch.tensor([now]), torch.tensor([place])])[0]
    place += len(now)
    now = [int(logits.reshape(-1, logits.shape[-1])[-1].argmax())]
    found += now
open(answer, "w").write(json.dumps(found))
"""


def _exported(
    home: Path, *, delegated: bool, seed: int = 3, quantization: dict[str, object] | None = None
) -> tuple[Path, list[int], list[int]]:
    """Return the folder of an export, and the tokens with and without its adapter."""
    plain = config("llama3", CACHE)
    halves = halves_of(plain, ATTENTION, seed=seed)
    content = {
        "base": {
            "model_class": "llama3",
            "params": SMALL,
            "lora_config": {"adapter_checkpoint": written_adapter(home / "adapter", halves)},
        },
        "model": CACHE,
        "export": {
            **LENGTHS,
            "foundation_weights_file": "foundation.ptd",
            "lora_weights_file": "adapter.ptd",
        },
        "backend": {"xnnpack": {"enabled": delegated}},
        "quantization": quantization or {},
    }
    (home / "model.yaml").write_text(yaml.safe_dump(content))
    found = run("llm", "export", str(home / "model.yaml"), "-o", str(home / "out"))
    assert found.code == 0, found.err
    with torch.no_grad():
        both = merged(plain, halves), build_model(plain).module
        wanted, bare = (generated(one, PROMPT, COUNT, cache=True) for one in both)
    assert wanted != bare
    return home / "out", wanted, bare


@pytest.mark.interop
@pytest.mark.parametrize("delegated", [False, True], ids=["portable", "xnnpack"])
def test_the_stock_runtime_reads_both_files_as_one_program(
    tmp_path: Path, *, delegated: bool
) -> None:
    # The wheel's Python API takes one data file; `etscope merge` makes one program of all.
    out, wanted, _ = _exported(tmp_path, delegated=delegated)
    files = [str(out / name) for name in ("model.pte", "foundation.ptd", "adapter.ptd")]
    found = run("merge", *files, "-o", str(tmp_path / "whole.pte"))
    assert found.code == 0, found.err
    given = [tmp_path / "whole.pte", json.dumps(list(PROMPT)), str(COUNT), tmp_path / "out.json"]
    done = run_stock(["-c", SCRIPT, *given], check=False)
    assert (tmp_path / "out.json").is_file(), done.stderr[-2000:]
    assert json.loads((tmp_path / "out.json").read_text()) == wanted


def _tokens(model: Path, *data: Path) -> list[int]:
    """Return the tokens of our runtime with some data files."""
    method = Runtime.get().load_program(model, data_path=list(data)).load_method("forward")
    now, place, found = list(PROMPT), 0, list[int]()
    for _ in range(COUNT):
        logits = method.execute([torch.tensor([now]), torch.tensor([place])])[0]
        place += len(now)
        now = [int(logits.reshape(-1, logits.shape[-1])[-1].argmax())]
        found += now
    return found


@pytest.mark.interop
@pytest.mark.parametrize("qmode", [None, "int8"])
def test_adapters_of_portable_programs_are_exchanged_by_file(
    tmp_path: Path, qmode: str | None
) -> None:
    """No weight of an adapter is folded, so that its file has them all by name."""
    quantization: dict[str, object] | None = None if qmode is None else {"qmode": qmode}
    outs: list[Path] = []
    tokens: list[list[int]] = []
    for seed in (3, 4):
        home = tmp_path / str(seed)
        home.mkdir()
        out, wanted, _ = _exported(home, delegated=False, seed=seed, quantization=quantization)
        own = _tokens(out / "model.pte", out / "foundation.ptd", out / "adapter.ptd")
        assert quantization is not None or own == wanted
        outs.append(out)
        tokens.append(own)
    first, second = outs
    assert tokens[0] != tokens[1]
    exchanged = first / "foundation.ptd", second / "adapter.ptd"
    assert _tokens(first / "model.pte", *exchanged) == tokens[1]
    whole = str(tmp_path / "whole.pte")
    found = run("merge", str(first / "model.pte"), *map(str, exchanged), "-o", whole)
    assert found.code == 0, found.err
    given = [whole, json.dumps(list(PROMPT)), str(COUNT), tmp_path / "out.json"]
    done = run_stock(["-c", SCRIPT, *given], check=False)
    assert (tmp_path / "out.json").is_file(), done.stderr[-2000:]
    assert json.loads((tmp_path / "out.json").read_text()) == tokens[1]


@pytest.mark.parametrize("delegated", [False, True], ids=["portable", "xnnpack"])
@pytest.mark.parametrize("mode", ["int8", "8da4w:group=32"])
def test_quantized_weights_are_in_the_foundation(
    tmp_path: Path, mode: str, *, delegated: bool
) -> None:
    module = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.Linear(256, 256)).eval()
    exported = export(module, (torch.randn(2, 256),))
    program = quantize_weights(exported, WeightModes(mode, modules={"1": "none"}))
    mark_weights(program, lambda name: "adapter" if name.startswith("1.") else "foundation")
    edge = to_edge_transform_and_lower(
        program, partitioner=[XnnpackPartitioner()] if delegated else None
    )
    made = edge.to_executorch(ExecutorchBackendConfig(external_constants=mark_behind))
    held = 256 * 256 // (1 if mode == "int8" else 2)
    made.write_tensor_data_to_file(tmp_path)
    sizes = {one.name: one.stat().st_size for one in tmp_path.iterdir()}
    assert sizes.keys() == {"foundation.ptd", "adapter.ptd"}
    assert held < sizes["foundation.ptd"] < 90_000 < sizes["adapter.ptd"]
    assert len(made.buffer) < 16_000


@pytest.mark.parametrize("delegated", [False, True], ids=["portable", "xnnpack"])
def test_a_data_file_that_is_missing_is_named(tmp_path: Path, *, delegated: bool) -> None:
    out, *_ = _exported(tmp_path, delegated=delegated)
    foundation, adapter = str(out / "foundation.ptd"), str(out / "adapter.ptd")
    into = ("-o", str(tmp_path / "r"), "--force")
    verbs = ((("run",), into), (("llm", "run"), ("--prompt", "ab")))
    for verb, words in verbs:
        found = run(*verb, str(out / "model.pte"), "--ptd", foundation, *words)
        assert found.code
        assert f"adapter.ptd beside the program is not loaded: --ptd {adapter}" in found.err
    (out / "adapter.ptd").rename(tmp_path / "adapter.ptd")
    for verb, words in verbs:
        found = run(*verb, str(out), *words)
        assert found.code
        told = f"adapter.ptd of the compile is missing in {out}: name a copy with --ptd."
        assert told in found.err, found.err
    moved = str(tmp_path / "adapter.ptd")
    found = run("run", str(out / "model.pte"), "--ptd", moved, *into)
    assert found.code
    assert f"foundation.ptd beside the program is not loaded: --ptd {foundation}" in found.err
    assert "adapter.ptd" not in found.err
    alone = tmp_path / "alone"
    alone.mkdir()
    shutil.copy(out / "model.pte", alone)
    found = run("run", str(alone / "model.pte"), *into)
    assert found.code
    assert "the .ptd file that was saved beside it" in found.err  # none is known
