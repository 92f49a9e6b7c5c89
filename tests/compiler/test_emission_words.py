"""Passes and backend-config fields by word: what a recipe names is what the compiler has."""

from __future__ import annotations

from dataclasses import fields
from inspect import signature

import pytest
import torch

from compiler import to_edge_transform_and_lower
from compiler.emit.config import ExecutorchBackendConfig
from compiler.memory.options import MemoryPlanningPass
from compiler.passes.base import PassBase, PassResult
from compiler.passes.table import STANDARD_PASSES, named_pass, standard_pass
from inspector.recipes.compile_job import CompileJob
from inspector.recipes.emission import CONFIG, PLANNING, WordError, check_passes, config_of
from inspector.recipes.source import Source
from inspector.worker.lowering import backend_config, check_names
from runtime import Runtime
from schema.recipe.passes import StandardPass, recipe_passes

pytestmark = pytest.mark.slow


def test_names_are_those_of_the_compiler_with_their_types() -> None:
    known = {one.name: one.default for one in fields(ExecutorchBackendConfig)}
    for name, kind in CONFIG.items():
        assert known[name] is None or type(known[name]) is kind, name
    options = signature(MemoryPlanningPass).parameters
    for name, kind in PLANNING.items():
        assert type(options[name].default) is kind, name
    assert set(recipe_passes()) < set(STANDARD_PASSES)


def test_every_field_that_is_a_flag_or_a_number_has_a_word() -> None:
    words = {
        one.name for one in fields(ExecutorchBackendConfig) if type(one.default) in (bool, int)
    }
    assert words - {"external_constants"} <= set(CONFIG)  # which has an option of its own


@pytest.mark.parametrize("name", [*CONFIG, *PLANNING])
def test_every_word_reaches_the_compiler(name: str) -> None:
    kind = CONFIG.get(name) or PLANNING[name]
    default = getattr(ExecutorchBackendConfig(), name, getattr(MemoryPlanningPass(), name, None))
    word, value = ("256", 256) if kind is int else (str(not default).lower(), not default)
    made = backend_config(CompileJob(Source("a.pt2"), backend_config=(f"{name}={word}",)))
    assert getattr(made if name in CONFIG else made.memory_planning_pass, name) == value


def test_last_word_counts() -> None:
    assert config_of(("alignment=16", "alignment=32", "joint_arena=true")) == (
        {"joint_arena": True},
        {"alignment": 32},
    )


def test_words_that_contradict_each_other_are_one_sentence() -> None:
    words = ("alloc_mutable_buffers=false", "share_mutable_buffers=true")
    with pytest.raises(Exception, match="share_mutable_buffers needs alloc_mutable_buffers"):
        check_names(CompileJob(Source("a.pt2"), backend_config=words))


class _Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = torch.nn.Parameter(torch.randn(4, 4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scale = self.table.sum() * torch.ones(4)  # known when it is compiled
        return (x.view(2, 8).view(4, 4) + scale) * (x.view(2, 8).view(4, 4) + scale).relu()


@pytest.mark.parametrize("name", recipe_passes())
def test_pass_by_name_leaves_the_program_right(name: str) -> None:
    torch.manual_seed(0)
    net, given = _Net().eval(), (torch.randn(4, 4),)
    exported = torch.export.export(net, given)
    edge = to_edge_transform_and_lower(exported, transform_passes=[standard_pass(name)])
    method = Runtime().load_program(edge.to_executorch().buffer).load_method("forward")
    torch.testing.assert_close(method.execute(given)[0], net(*given), rtol=1e-5, atol=1e-5)


class ToyPass(PassBase):
    def call(self, graph_module: torch.fx.GraphModule) -> PassResult:
        return PassResult(graph_module, False)


def test_pass_of_one_file_and_one_line_is_known_to_recipes(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(WordError, match="toy"):
        check_passes(("toy",))
    monkeypatch.setitem(STANDARD_PASSES, "toy", StandardPass(f"{__name__}:ToyPass", True))
    check_passes(("toy",))
    assert type(named_pass("toy")).__name__ == "ToyPass"
    assert "toy" in recipe_passes()
