"""Delegation in all documented forms, with the demonstrations of the documents."""

from __future__ import annotations

from pathlib import Path
from typing import Any, final

import pytest
import torch
from torch import nn

import compiler
from compiler import (
    AllNodePartitioner,
    BackendDetails,
    CompileSpec,
    DelegateMappingBuilder,
    DelegationSpec,
    ExecutorchBackendConfig,
    ExportPass,
    MethodProgramsPartitionerSpec,
    NamedDataStore,
    PreprocessResult,
    ops,
    to_backend,
    to_edge,
    to_edge_transform_and_lower,
)
from compiler.backends.demo import AddMulPartitionerDemo, AllNodesPartitionerDemo
from compiler.partition.tags import tag_constant_data, tag_mutated_buffer
from schema import program as pte
from schema.program import model as m
from tests.compiler.delegation import (
    ByNode,
    SharingBackend,
    calls,
    edge,
    exported,
    payloads,
)

pytestmark = pytest.mark.slow
MATRICES = tuple(torch.randn(2, 2) for _ in range(3))


class MulAdd(nn.Module):
    """The program of the documents: mm, add, sub, mm, add."""

    def forward(self, a: torch.Tensor, x: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        y = torch.mm(a, x)
        z = torch.add(y, b)
        a = torch.sub(z, a)
        y = torch.mm(a, x)
        return torch.add(y, b)


class Weighted(nn.Module):
    state: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(3))
        self.register_buffer("state", torch.ones(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = (x + self.weight).sigmoid() * self.weight
        self.state.add_(y)
        return y.relu()


def _sin() -> Any:
    return to_backend(
        "BackendWithCompilerDemo", edge(torch.sin, torch.ones(1)).exported_program(), []
    )


def _instructions(program: pte.ProgramFile) -> list[Any]:
    return [i.instr_args for i in program.plan("forward").chains[0].instructions]


def test_add_mul_partitioner_makes_two_delegates_around_one_sub() -> None:  # V03
    before = edge(MulAdd(), *MATRICES)
    text = str(before.exported_program())
    after = before.to_backend(AddMulPartitionerDemo())
    assert str(before.exported_program()) == text
    program = after.exported_program()
    assert calls(program) == [
        "executorch_call_delegate",
        "getitem",
        "aten.sub.Tensor",
        "executorch_call_delegate",
        "getitem",
    ]
    for payload, handles in zip(payloads(after), ((1, 2), (4, 5)), strict=True):
        mm, add = (f", numel:4, dtype:torch.float32<debug_handle>{h}#" for h in handles)
        assert payload == f"2version:0#op:demo::aten.mm.default{mm}op:demo::aten.add.Tensor{add}"
    tags = {v.node: v.partition for v in after.verdicts["forward"]}
    assert tags["aten_mm_default_1"] < tags["aten_mm_default"]  # partitions count from the end
    assert torch.equal(program.module()(*MATRICES), MulAdd()(*MATRICES))
    assert all("delegation_tag" not in node.meta for node in program.graph.nodes)


def test_sin_lowered_whole_has_the_documented_payload() -> None:  # V05
    lowered = _sin()
    wanted = b"1version:0#op:demo::aten.sin.default, numel:1, dtype:torch.float32<debug_handle>1#"
    assert lowered.processed_bytes == wanted
    assert lowered.backend_id == "BackendWithCompilerDemo"
    assert lowered.compile_specs == []
    assert torch.equal(lowered(torch.ones(1)), torch.sin(torch.ones(1)))
    program = pte.decode(lowered.buffer())
    assert _instructions(program) == [m.DelegateCall(0, (0, 1))]
    inline = pte.decode(lowered.buffer(extract_delegate_segments=False))
    assert inline.plan("forward").delegates[0].processed == m.BackendDelegateDataReference(0, 0)
    assert bytes(inline.table.backend_delegate_data[0].data) == wanted
    assert lowered.program().plan("forward").delegates[0].id == "BackendWithCompilerDemo"


def test_lowered_module_used_twice_becomes_two_calls_of_one_payload() -> None:
    class Composed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lowered = _sin()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.lowered(self.lowered(x) + 1)

    program = exported(Composed(), torch.ones(1))
    manager = to_edge(program)
    assert torch.equal(program.module()(torch.ones(1)), Composed()(torch.ones(1)))
    emitted = manager.to_executorch()
    decoded = pte.decode(emitted.buffer)
    plan = decoded.plan("forward")
    assert [type(i).__name__ for i in _instructions(decoded)] == [
        "DelegateCall",
        "KernelCall",
        "DelegateCall",
    ]
    assert {d.processed for d in plan.delegates} == {m.BackendDelegateDataReference(1, 1)}
    # inner handles are of another program: they stand for the call
    assert emitted.debug_handle_map["forward"] == {0: [1], 1: 2, 2: [3]}
    assert emitted.delegate_map["forward"][2]["delegate_map"] == {1: (3,)}


def test_lowered_module_refuses_inputs_of_another_shape_when_it_is_exported() -> None:
    with pytest.raises(compiler.CompileError, match=r"expects inputs of shapes \[\(1,\)\]"):
        exported(_sin(), torch.ones(2))


def test_whole_graph_demo_holds_a_program_that_computes_the_same() -> None:
    manager = edge(Weighted(), torch.randn(3)).to_backend(AllNodesPartitionerDemo())
    program = manager.exported_program()
    assert calls(program).count("executorch_call_delegate") == 1
    assert "weight" not in program.state_dict
    (child,) = program.graph_module.children()
    inner: Any = child
    operators = [o.name for o in pte.decode(inner.processed_bytes).plan("forward").operators]
    assert "aten::sigmoid" in operators


def test_several_partitioners_in_their_order_and_several_backends() -> None:
    def of(*names: str) -> Any:
        return lambda node: "t" if any(name in node.name for name in names) else None

    second = DelegationSpec("SecondBackend", [CompileSpec("k", b"v")])
    program = exported(lambda x: x.relu().sigmoid().neg(), torch.randn(3))
    first = ByNode(of("relu", "sigmoid"))
    other = ByNode(of("sigmoid", "neg"), t=second)
    one = to_edge_transform_and_lower(program, partitioner=[first, other])
    two = to_edge_transform_and_lower(program, partitioner=[other, first])
    assert payloads(one) == ["aten.relu.default aten.sigmoid.default", "second: aten_neg_default"]
    assert payloads(two) == ["aten.relu.default", "second: aten_sigmoid_default aten_neg_default"]
    delegates = pte.decode(one.to_executorch().buffer).plan("forward").delegates
    assert [d.id for d in delegates] == ["NameBackend", "SecondBackend"]
    assert [(s.key, bytes(s.value)) for s in delegates[1].compile_specs] == [("k", b"v")]


def test_one_partitioner_gives_tags_to_two_backends() -> None:
    specs = {"b": DelegationSpec("SecondBackend", [])}
    choose = ByNode(lambda n: "a" if "relu" in n.name else "b", **specs)
    manager = edge(lambda x: x.relu().neg().relu(), torch.randn(3))
    with pytest.raises(compiler.PartitionCycleError):
        manager.to_backend(choose)
    found = edge(lambda x: x.relu().neg(), torch.randn(3)).to_backend(choose)
    assert payloads(found) == ["aten.relu.default", "second: aten_neg_default"]


def test_partitioners_by_method_leave_other_methods_alone() -> None:
    programs = {"a": exported(torch.relu, torch.ones(2)), "b": exported(torch.relu, torch.ones(2))}
    take = ByNode(lambda _: "t")
    for manager in (
        to_edge_transform_and_lower(programs, partitioner={"a": [take]}),
        to_edge(programs).to_backend({"a": take}),
    ):
        assert calls(manager.exported_program("a"))[0] == "executorch_call_delegate"
        assert calls(manager.exported_program("b")) == ["aten.relu.default"]
    with pytest.raises(compiler.PartitionError, match="unknown method c"):
        to_edge(programs).to_backend({"c": take})


def test_backend_that_wants_all_methods_sees_them_once_and_shares_blobs() -> None:
    shared = nn.Linear(3, 3)
    programs = {
        "one": exported(shared, torch.ones(1, 3)),
        "two": exported(nn.Sequential(shared, nn.ReLU()), torch.ones(1, 3)),
    }
    spec = DelegationSpec("SharingBackend", [])
    take = ByNode(lambda _: "t", tag_constant_data, t=spec)
    SharingBackend.seen.clear()
    manager = to_edge(programs).to_backend(take)
    assert [set(seen) for seen in SharingBackend.seen] == [{"one", "two"}]
    program = pte.decode(manager.to_executorch().buffer)
    named = program.table.named_data or ()
    assert {entry.key for entry in named} == {"weight", "bias", "0.weight", "0.bias"}
    assert len({entry.segment_index for entry in named}) == 2
    weight = program.segments[next(e.segment_index for e in named if e.key == "weight")]
    assert bytes(weight) == shared.weight.detach().numpy().tobytes()


def test_methods_and_partitioners_in_one_specification() -> None:
    programs = {"a": edge(torch.relu, torch.ones(2)).exported_program()}
    found = to_backend(MethodProgramsPartitionerSpec(programs, {"a": ByNode(lambda _: "t")}))
    assert calls(found["a"])[0] == "executorch_call_delegate"


def test_weights_and_state_of_a_delegate_leave_the_program() -> None:
    def tag(program: Any) -> None:
        tag_constant_data(program)
        tag_mutated_buffer(program)

    manager = edge(Weighted(), torch.randn(3))
    whole = manager.to_backend(ByNode(lambda _: "t", tag)).exported_program()
    assert whole.state_dict == {}
    assert [s.kind.name for s in whole.graph_signature.input_specs] == ["USER_INPUT"]
    assert [s.kind.name for s in whole.graph_signature.output_specs] == ["USER_OUTPUT"]
    only_weights = manager.to_backend(ByNode(lambda _: "t", tag_constant_data)).exported_program()
    assert set(only_weights.state_dict) == {"state"}
    kinds = [s.kind.name for s in only_weights.graph_signature.output_specs]
    assert kinds == ["BUFFER_MUTATION", "USER_OUTPUT"]
    untagged = manager.to_backend(ByNode(lambda _: "t")).exported_program()
    assert set(untagged.state_dict) == {"state", "weight"}
    assert set(manager.exported_program().state_dict) == {"state", "weight"}
    x = torch.randn(3)
    for program in (whole, only_weights, untagged):
        assert program.graph_module is not manager.exported_program().graph_module
        inner: Any = next(program.graph_module.children())
        assert "weight" in inner.original_module.state_dict or program is untagged
    wanted = Weighted().eval()
    wanted.load_state_dict(manager.exported_program().state_dict)
    assert torch.allclose(untagged.module()(x), wanted(x))


def test_constant_of_two_partitions_is_given_to_both() -> None:
    manager = edge(Weighted(), torch.randn(3))
    choose = ByNode(
        lambda n: {"aten_add_tensor": "a", "aten_mul_tensor": "b"}.get(n.name), tag_constant_data
    )
    program = manager.to_backend(choose).exported_program()
    assert "weight" not in program.state_dict
    modules: list[Any] = list(program.graph_module.children())
    assert ["weight" in module.original_module.state_dict for module in modules] == [True, True]


def test_backend_that_changes_its_copy_changes_nothing_else() -> None:
    module = Weighted()
    weight = module.weight.detach().clone()
    manager = edge(module, torch.randn(3))
    choose = ByNode(lambda _: "t", tag_constant_data, t=DelegationSpec("SecondBackend", []))
    lowered: Any = next(manager.to_backend(choose).exported_program().graph_module.children())
    assert torch.equal(module.weight, weight)
    assert torch.equal(lowered.original_module.state_dict["weight"], weight)
    assert lowered.original_module.graph_signature.user_outputs


def test_operator_kept_whole_is_taken_or_decomposed() -> None:
    class Keeping(ByNode):
        def ops_to_not_decompose(self, ep: Any) -> Any:
            return [torch.ops.aten.linear.default], lambda node: len(node.args) == 3

    net = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3, bias=False))
    program = exported(net, torch.randn(1, 3))
    take = Keeping(lambda n: "t" if n.target is ops.edge.aten.linear.default else None)
    manager = to_edge_transform_and_lower(program, partitioner=take)
    assert payloads(manager) == ["aten.linear.default"]
    assert "aten.mm.default" in calls(manager.exported_program())
    (left,) = [v for v in manager.verdicts["forward"] if v.outcome.value == "decomposed_away"]
    assert left.operator == "aten.linear.default"
    assert "aten.mm.default" in left.reason
    assert left.reason.endswith("the filter of Keeping does not preserve this node")

    nobody = to_edge_transform_and_lower(program, partitioner=Keeping(lambda _: None))
    assert "aten.linear.default" not in calls(nobody.exported_program())
    reasons = [v.reason for v in nobody.verdicts["forward"] if v.operator == "aten.linear.default"]
    assert len(reasons) == 2
    assert "no partitioner took it" in reasons[0]
    nobody.to_executorch()  # runs on kernels that are there


def test_operator_without_a_decomposition_stays_where_no_partitioner_takes_it() -> None:
    class Keeping(ByNode):
        def ops_to_not_decompose(self, ep: Any) -> Any:
            return [torch.ops.aten.upsample_bilinear2d.vec, torch.ops.aten.linear.default], None

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(4, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.linear(nn.functional.interpolate(x, scale_factor=2.0, mode="bilinear"))

    program = exported(Net(), torch.randn(1, 1, 2, 2))
    for taken in (False, True):
        take = Keeping(lambda n, taken=taken: "t" if taken and "aten_linear" in n.name else None)
        manager = to_edge_transform_and_lower(program, partitioner=take)
        outcomes = {v.operator: v.outcome.value for v in manager.verdicts["forward"]}
        assert outcomes["aten.upsample_bilinear2d.vec"] == "no_rule_for_operator"
        assert outcomes["aten.linear.default"] == ("delegated" if taken else "decomposed_away")


def test_operators_are_kept_whole_for_one_of_several_partitioners() -> None:
    class Keeping(ByNode):
        def ops_to_not_decompose(self, ep: Any) -> Any:
            return [torch.ops.aten.linear.default], None

    program = exported(nn.Linear(3, 3), torch.randn(1, 3))
    nothing, take = ByNode(lambda _: None), Keeping(lambda _: "t")
    manager = to_edge_transform_and_lower(program, partitioner=[nothing, take])
    assert payloads(manager) == ["aten.linear.default"]


def test_payload_may_start_where_it_is_asked_to() -> None:
    manager = edge(torch.relu, torch.ones(2)).to_backend(ByNode(lambda _: "t"))
    buffer = manager.to_executorch(ExecutorchBackendConfig(delegate_alignment=4096)).buffer
    program = pte.decode(buffer)
    base = buffer.index(b"aten.relu.default")
    assert base % 4096 == 0
    assert program.plan("forward").delegates[0].processed == m.BackendDelegateDataReference(1, 1)
    inline = ExecutorchBackendConfig(delegate_alignment=4096, extract_delegate_segments=False)
    with pytest.raises(compiler.CompileError, match="multiples of 16 bytes, not of 4096"):
        manager.to_executorch(inline)


def test_memory_of_a_delegate_lives_as_that_of_an_operator() -> None:
    program = exported(lambda x: (x.relu().neg() + 1).sigmoid(), torch.randn(64))
    manager = to_edge_transform_and_lower(
        program, partitioner=ByNode(lambda n: "t" if "neg" in n.name else None)
    )
    plain, delegated = to_edge(program).to_executorch(), manager.to_executorch()
    assert delegated.memory_plans["forward"].nbytes == plain.memory_plans["forward"].nbytes


MAPPING_FAULTS = [
    (True, {"handles": 1, "identifier": 1}, "can't manually add identifiers"),
    (False, {"handles": 1, "identifier": "first"}, "already inserted"),
    (False, {"handles": 1}, "No identifier provided"),
    (True, {}, "Only one of nodes or handles"),
    (True, {"handles": 1, "nodes": []}, "Only one of nodes or handles"),
    (True, {"handles": [None]}, "No valid debug handles"),
    (True, {"nodes": []}, "No valid debug handles"),
]


@pytest.mark.parametrize(("generated", "arguments", "message"), MAPPING_FAULTS)
def test_entry_of_a_delegate_map_with_wrong_arguments_is_refused(
    generated: bool, arguments: dict[str, Any], message: str
) -> None:
    builder = DelegateMappingBuilder(generated)
    builder.insert_delegate_mapping_entry(handles=9, identifier=None if generated else "first")
    before = builder.get_delegate_mapping()
    with pytest.raises(Exception, match=message):
        builder.insert_delegate_mapping_entry(**arguments)
    assert builder.get_delegate_mapping() == before


def test_delegate_map_holds_handles_in_order_and_once() -> None:
    nodes = [n for n in edge(MulAdd(), *MATRICES).exported_program().graph.nodes if "mm" in n.name]
    builder = DelegateMappingBuilder(generated_identifiers=True)
    assert builder.insert_delegate_mapping_entry(nodes=nodes) == 0
    assert builder.insert_delegate_mapping_entry(handles=[7, None, 3, 7]) == 1
    assert builder.get_delegate_mapping() == {0: (1, 4), 1: (3, 7)}


def test_blobs_of_a_delegate_may_go_to_a_file_beside_the_program(tmp_path: Path) -> None:
    store = NamedDataStore()
    store.add_named_data("inside", b"in the program")
    store.add_named_data("outside", torch.arange(3.0), external_tag="weights")

    @final
    class ExternalBackend(BackendDetails):
        @staticmethod
        def preprocess(edge_program: Any, compile_specs: Any) -> PreprocessResult:
            return PreprocessResult(b"p", None, store.get_named_data_store_output())

    name = ExternalBackend.__name__
    manager = edge(torch.relu, torch.ones(2)).to_backend(AllNodePartitioner(name, []))
    program = manager.to_executorch()
    program.write_tensor_data_to_file(str(tmp_path))
    (file,) = tmp_path.iterdir()
    assert file.name == "weights.ptd"
    assert torch.arange(3.0).numpy().tobytes() in file.read_bytes()
    named = pte.decode(program.buffer).table.named_data or ()
    assert [entry.key for entry in named] == ["inside"]


def test_passes_run_before_partitioners_and_keep_verdicts_after_them() -> None:
    class Swap(ExportPass):
        def call_operator(self, op: Any, args: Any, kwargs: Any, meta: Any) -> Any:
            swapped = {ops.edge.aten.relu.default: ops.edge.aten.neg.default}.get(op, op)
            return super().call_operator(swapped, args, kwargs, meta)

    take = ByNode(lambda n: "t" if "neg" in n.name else None)
    program = exported(lambda x: x.relu().sigmoid(), torch.ones(2))
    manager = to_edge_transform_and_lower(
        program, transform_passes=[Swap()], partitioner=take, generate_etrecord=True
    )
    assert payloads(manager) == ["aten.neg.default"]
    later = manager.transform([Swap()])
    assert later.verdicts == manager.verdicts
    assert calls(later.exported_program())[0] == "executorch_call_delegate"
    later.to_executorch().get_etrecord()


CHOICES: list[Any] = [
    ByNode(lambda n: "t" if "neg" in n.name else None),
    ByNode(lambda n: "t" if "view" in n.name else None),
    ByNode(lambda n: "t" if hasattr(n.target, "_schema") and "sym" not in n.name else None),
    AllNodePartitioner("NameBackend", []),
]


@pytest.mark.parametrize("place", range(len(CHOICES)))
def test_sizes_that_change_enter_and_leave_delegates(place: int) -> None:
    def compute(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x.relu().view(x.shape[0] * 2, 2).neg(), x + 1

    rows = torch.export.Dim("rows", min=2, max=10)
    program = exported(compute, torch.randn(4, 4), dynamic_shapes=(({0: rows},),))
    manager = to_edge(program, generate_etrecord=True).to_backend(CHOICES[place])
    x = torch.randn(7, 4)
    for found, wanted in zip(manager.exported_program().module()(x), compute(x), strict=True):
        assert torch.equal(found, wanted)
    plan = pte.decode(manager.to_executorch().buffer).plan("forward")
    sizes = [value.val.sizes for value in plan.values if isinstance(value.val, m.Tensor)]
    assert (20, 2) in sizes


def test_lowered_module_in_a_program_that_writes_through_views() -> None:
    class Writing(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lowered = _sin()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = self.lowered(x).repeat(4)
            y[1:3] = 7
            return y

    manager = edge(Writing(), torch.ones(1))
    assert calls(manager.exported_program()).count("executorch_call_delegate") == 1
    found = manager.exported_program().module()(torch.ones(1))
    assert torch.equal(found, Writing()(torch.ones(1)))
    manager.to_executorch()
