"""The session: stages in order, what each left, and recipes that are combined."""

from __future__ import annotations

import importlib
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from compiler import EdgeCompileConfig, ExecutorchBackendConfig, ExportPass, ops
from compiler.backends.demo import AddMulPartitionerDemo
from compiler.compat.session import (
    BackendRecipeProvider,
    ExportRecipe,
    ExportSession,
    LoweringRecipe,
    Mode,
    QuantizationRecipe,
    RecipeType,
    Stage,
    StageType,
    export,
    recipe_registry,
)
from compiler.compat.xnnpack.recipes import XNNPackRecipeType
from inspector.recipes.compile_job import CompileJob
from inspector.recipes.source import Source
from inspector.worker.compile_job import compile_into
from schema import program as pte
from tests.compiler.test_passes import ReluToSigmoid

pytestmark = pytest.mark.slow
_S = StageType


class Sums(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return (x + y).relu()


_INPUTS = [(torch.randn(2, 3), torch.randn(2, 3)), (torch.randn(2, 3), torch.randn(2, 3))]


def _operators(session: ExportSession, method: str = "forward") -> list[str]:
    plan = pte.decode(session.get_pte_buffer()).plan(method)
    return [operator.name for operator in plan.operators]


def test_module_goes_through_all_stages_to_a_file(tmp_path: Path) -> None:
    session = export(Sums().eval(), _INPUTS, ExportRecipe(strict=False), generate_etrecord=True)
    assert list(session.get_stage_artifacts()) == [
        _S.SOURCE_TRANSFORM,
        _S.QUANTIZE,
        _S.TORCH_EXPORT,
        _S.TO_EDGE_TRANSFORM_AND_LOWER,
        _S.TO_EXECUTORCH,
    ]
    assert all("duration_ms" in a.context for a in session.get_stage_artifacts().values())
    assert _operators(session) == ["aten::add", "aten::relu"]
    session.save_to_pte(str(tmp_path / "sums"))
    with pytest.raises(AssertionError, match="Need a valid output name"):
        session.save_to_pte("")
    assert (tmp_path / "sums.pte").read_bytes() == session.get_pte_buffer()
    assert session.get_example_input() is _INPUTS[0]
    assert session.get_exported_program().graph
    record = tmp_path / "sums.etrecord"
    session.get_etrecord().save(record)
    assert record.stat().st_size


def test_recipe_lowers_transforms_and_configures(capsys: pytest.CaptureFixture[str]) -> None:
    seen: list[str] = []

    def passes(name: str, program: Any) -> list[Any]:
        seen.append(name)
        return [ReluToSigmoid()]

    def edited(name: str, program: Any) -> Any:
        seen.append(f"aten {name}")
        return program

    recipe = ExportRecipe(
        name="demo",
        aten_transform_passes=[edited],
        lowering_recipe=LoweringRecipe(
            partitioners=[AddMulPartitionerDemo()],
            edge_transform_passes=[passes],
            edge_manager_transform_passes=[lambda manager: [ExportPass()]],
            edge_compile_config=EdgeCompileConfig(_check_ir_validity=True),
        ),
        executorch_backend_config=ExecutorchBackendConfig(emit_stacktrace=True),
        strict=False,
    )
    session = export({"one": Sums().eval()}, {"one": _INPUTS}, recipe)
    assert seen == ["aten one", "one"]
    assert _operators(session, "one") == ["aten::sigmoid"]
    chain = pte.decode(session.get_pte_buffer()).plan("one").chains[0]
    assert chain.stacktrace is not None
    session.print_delegation_info()
    text = capsys.readouterr().out
    assert "Method one\nTotal delegated subgraphs: 1\nNumber of delegated nodes: 1" in text
    rows = {tuple(line.split()) for line in text.splitlines()}
    assert {("aten.add.Tensor", "1", "0"), ("aten.sigmoid.default", "0", "1")} <= rows


def test_exported_program_and_path_need_no_inputs(tmp_path: Path) -> None:
    program = torch.export.export(Sums().eval(), _INPUTS[0])
    path = tmp_path / "sums.pt2"
    torch.export.save(program, path)
    for given in (program, str(path), {"forward": program}):
        session = export(given, constant_methods={"version": 3})
        assert _S.TORCH_EXPORT not in session.get_stage_artifacts()
        assert session.get_executorch_program_manager().config_methods == {"version"}
        with pytest.raises(RuntimeError, match="torch_export has not run"):
            session.get_exported_program()


def test_stages_may_be_chosen_and_replaced() -> None:
    stages = [_S.TORCH_EXPORT, _S.TO_EDGE, _S.TO_BACKEND, _S.TO_EXECUTORCH]
    recipe = ExportRecipe(
        pipeline_stages=stages,
        strict=False,
        lowering_recipe=LoweringRecipe(partitioners=[AddMulPartitionerDemo()]),
    )
    session = ExportSession(Sums().eval(), _INPUTS, recipe)
    told: list[Any] = []

    class Watching(Stage):
        stage_type = _S.TO_EDGE
        valid_predecessor_stages = [_S.TORCH_EXPORT]  # noqa: RUF012 - as documented
        can_start_pipeline = False

        def run(self, artifact: Any) -> None:
            told.append(artifact.data)
            inner = ExportSession(artifact.data)
            inner.export()
            self._artifact = artifact.copy_with_new_data(inner.get_edge_program_manager())

    session.register_stage(_S.TO_EDGE, Watching())
    session.export()
    assert list(told[0]) == ["forward"]
    assert list(session.get_stage_artifacts()) == stages
    targets = [n.target for n in session.get_edge_program_manager().exported_program().graph.nodes]
    assert ops.edge.aten.relu.default in targets
    assert ops.edge.aten.add.Tensor not in targets


@pytest.mark.parametrize(
    ("stages", "reason"),
    [
        ([_S.TO_EDGE, _S.TORCH_EXPORT], "Invalid transition from to_edge to torch_export"),
        ([_S.TO_BACKEND], "cannot start a pipeline"),
        ([_S.TORCH_EXPORT, _S.TO_EXECUTORCH], "it may follow"),
    ],
)
def test_stages_that_cannot_follow_each_other_are_refused(stages: Any, reason: str) -> None:
    session = ExportSession(Sums().eval(), _INPUTS, ExportRecipe(pipeline_stages=stages))
    with pytest.raises(ValueError, match=reason):
        session.export()


def test_models_and_inputs_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="example_inputs are required"):
        ExportSession(Sums())
    with pytest.raises(TypeError, match="Unsupported model type"):
        ExportSession(3, _INPUTS)
    with pytest.raises(ValueError, match="Example inputs for method b not found"):
        export({"b": Sums().eval()}, {"a": _INPUTS})
    program = torch.export.export(Sums().eval(), _INPUTS[0])
    with pytest.raises(ValueError, match=r"Cannot run QUANTIZE stage\(s\) with an ExportedProgram"):
        export(program, export_recipe=ExportRecipe(pipeline_stages=[_S.QUANTIZE]))


def test_combined_recipe_has_the_parts_of_all_and_refuses_conflicts() -> None:
    def first(name: str, program: Any) -> list[Any]:
        return []

    def second(name: str, program: Any) -> list[Any]:
        return []

    one = ExportRecipe("one", lowering_recipe=LoweringRecipe(edge_transform_passes=[first]))
    two = ExportRecipe("two", lowering_recipe=LoweringRecipe(edge_transform_passes=[second]))
    both = ExportRecipe.combine([one, two])
    assert both.name == "one_two"
    assert both.lowering_recipe is not None
    assert both.lowering_recipe.edge_transform_passes == [first, second]
    assert one.lowering_recipe is not None
    assert one.lowering_recipe.edge_transform_passes == [first]
    with pytest.raises(ValueError, match="conflicting 'mode'"):
        ExportRecipe.combine([one, ExportRecipe("three", mode=Mode.DEBUG)])
    with pytest.raises(ValueError, match="cannot be empty"):
        ExportRecipe.combine([])


def _add_quantizer() -> Any:
    home: Any = importlib.import_module("torchao.quantization.pt2e.quantizer")
    observers: Any = importlib.import_module("torchao.quantization.pt2e")
    spec = home.QuantizationSpec(
        dtype=torch.uint8,
        observer_or_fake_quant_ctr=observers.MinMaxObserver,
        quant_min=0,
        quant_max=255,
        qscheme=torch.per_tensor_affine,
    )

    class AddQuantizer(home.Quantizer):
        def annotate(self, model: Any) -> Any:
            for node in model.graph.nodes:
                if node.target is torch.ops.aten.add.Tensor:
                    node.meta["quantization_annotation"] = home.QuantizationAnnotation(
                        input_qspec_map=dict.fromkeys(node.args, spec),
                        output_qspec=spec,
                        _annotated=True,
                    )
            return model

        def validate(self, model: Any) -> None:
            pass

    return AddQuantizer()


def test_quantizer_of_a_recipe_calibrates_with_all_inputs_and_fuses() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of torchao, about itself
        seen: list[str] = []
        recipe = ExportRecipe(
            quantization_recipe=QuantizationRecipe(
                quantizers=[_add_quantizer()],
                pre_prepare_passes=[lambda graph: (seen.append("before"), graph)[1]],
                post_convert_passes=[lambda graph: (seen.append("after"), graph)[1]],
            ),
            executorch_backend_config=ExecutorchBackendConfig(do_quant_fusion_and_const_prop=True),
            strict=False,
        )
        module = Sums().eval()
        session = export(module, _INPUTS, recipe)
    assert seen == ["before", "after"]
    assert "quantized_decomposed::add" in _operators(session)
    lowered: Any = session.get_edge_program_manager().exported_program().module()
    for given in _INPUTS:
        assert (lowered(*given) - module(*given)).abs().max() < 0.1


def test_session_above_the_runtime_runs_what_it_made() -> None:
    exporting = importlib.import_module("inspector.compat.export_session")
    config = ExecutorchBackendConfig(external_constants=True)
    recipe = ExportRecipe(strict=False, executorch_backend_config=config)
    module = nn.Linear(3, 2).eval()
    inputs = [(torch.randn(2, 3),), (torch.randn(2, 3),)]
    session = exporting.export(module, inputs, recipe, constant_methods={"size": 7})
    for given, found in ((inputs[0], session.run_method()), (inputs[1], None)):
        results = session.run_method("forward", given) if found is None else found
        torch.testing.assert_close(results, [module(*given)])
    assert session.run_method("size") == [7]
    with pytest.raises(KeyError, match="'other' not found; available: forward, size"):
        session.run_method("other")


def test_recipes_are_found_by_the_backend_of_their_type() -> None:
    class Ours(RecipeType):
        PLAIN = "plain"
        OTHER = "other"

        @classmethod
        def get_backend_name(cls) -> str:
            return "ours"

    class Provider(BackendRecipeProvider):
        backend_name = "ours"

        def get_supported_recipes(self) -> list[RecipeType]:
            return [Ours.PLAIN]

        def create_recipe(self, recipe_type: RecipeType, **kwargs: Any) -> ExportRecipe | None:
            known = self.supports_recipe(recipe_type)
            return ExportRecipe(name=kwargs["name"]) if known else None

    with pytest.raises(ValueError, match="'ours' not available"):
        ExportRecipe.get_recipe(Ours.PLAIN)
    recipe_registry.register_backend_recipe_provider(Provider())
    try:
        assert ExportRecipe.get_recipe(Ours.PLAIN, name="x").name == "x"
        with pytest.raises(
            ValueError, match=r"'other' not supported by 'ours'\. Supported: \['plain'\]"
        ):
            ExportRecipe.get_recipe(Ours.OTHER)
    finally:
        recipe_registry._providers.pop("ours")
    with pytest.raises(ValueError, match="Invalid recipe type"):
        ExportRecipe.get_recipe("plain")
    lowering = ExportRecipe.get_recipe(XNNPackRecipeType.FP32).lowering_recipe
    assert lowering is not None
    assert [type(p).__name__ for p in lowering.partitioners or []] == ["XnnpackPartitioner"]


def test_session_and_compile_job_write_the_same_program(tmp_path: Path) -> None:
    program = torch.export.export(Sums().eval(), _INPUTS[0])
    torch.export.save(program, tmp_path / "sums.pt2")
    source = Source(str(tmp_path / "sums.pt2"))
    compile_into(CompileJob(source, partitioners=("demo-add-mul",)), tmp_path, _silent)
    lowering = LoweringRecipe(partitioners=[AddMulPartitionerDemo()])
    session = export(str(tmp_path / "sums.pt2"), None, ExportRecipe(lowering_recipe=lowering))
    assert session.get_pte_buffer() == (tmp_path / "model.pte").read_bytes()


def _silent(kind: str, **content: object) -> None:
    pass
