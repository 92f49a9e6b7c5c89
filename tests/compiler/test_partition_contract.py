"""Partitioners and backends that break the rules: each is one clear error, nothing is changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final

import pytest
import torch
from torch import nn

import compiler
from compiler import (
    BackendDetails,
    CompileSpec,
    DelegationSpec,
    Partitioner,
    PartitionResult,
    PartitionRules,
    PreprocessResult,
    SteeredPartitioner,
    to_backend,
    to_edge_transform_and_lower,
)
from compiler.partition.tags import tag_constant_data, tag_mutated_buffer
from schema.program import decode
from tests.compiler.delegation import RUBBISH, ByNode, aten, calls, edge, exported

pytestmark = pytest.mark.slow


class Net(nn.Module):
    state: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(3))
        self.register_buffer("state", torch.ones(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = (x + self.weight).sigmoid() * self.weight
        self.state.add_(y)
        return y.relu()


def _tag(name: str, tag: str = "t") -> Callable[[Any], None]:
    def act(program: Any) -> None:
        node = next(n for n in program.graph.nodes if n.name == name)
        node.meta["delegation_tag"] = tag

    return act


def _erase(program: Any) -> None:
    node = next(n for n in program.graph.nodes if n.name == "aten_relu_default")
    node.replace_all_uses_with(node.args[0])
    program.graph.erase_node(node)


def _retarget(program: Any) -> None:
    node = next(n for n in program.graph.nodes if n.name == "aten_relu_default")
    node.target = aten.neg.default


def _reorder(program: Any) -> None:
    node = next(n for n in program.graph.nodes if n.name == "aten_mul_tensor")
    node.args = node.args[::-1]


def _revalue(program: Any) -> None:
    node = next(n for n in program.graph.nodes if n.name == "aten_relu_default")
    node.meta["val"] = node.meta["val"].new_empty(7)


def _forget(program: Any) -> None:
    for node in program.graph.nodes:
        node.meta.pop("val", None)


def _other_weight(program: Any) -> None:
    program.state_dict["weight"] = nn.Parameter(torch.zeros(3))


def _own_no_copy(program: Any) -> None:
    tag_constant_data(program)
    for node in program.graph.nodes:
        node.meta["no_copy"] = True


FAULTS = {
    "output tagged": (_tag("output"), r"output node output should not be tagged \(with t\)"),
    "input tagged": (_tag("x"), "non-tensor constants should not be tagged: x has the tag t"),
    "node erased": (_erase, r"ByNode should not modify the graph module.*relu"),
    "operator changed": (_retarget, "should not modify the graph module.*aten.neg"),
    "arguments changed": (_reorder, "should not modify the graph module.*mul"),
    "value changed": (
        _revalue,
        "should not modify the graph module: the value of aten_relu_default was "
        r"float32\[3\] of strides 1 and has become float32\[7\]",
    ),
    "values forgotten": (_forget, r"the value of \w+ was float32\[3\].* has become None"),
    "weight replaced": (_other_weight, "should not modify .* weight has other content"),
    "constant of two": (
        _own_no_copy,
        r"data node \(p_weight\).*\(t\) but has user \(aten_mul_tensor\)",
    ),
    "state of two": (tag_mutated_buffer, r"data node \(b_state\).*tag \(None\)"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_partitioner_that_breaks_a_rule_is_one_error_and_changes_nothing(fault: str) -> None:
    act, message = FAULTS[fault]
    manager = edge(Net(), torch.randn(3))
    text = str(manager.exported_program())
    after = act if act is not tag_mutated_buffer else lambda p: _tag("b_state")(p)
    choose = ByNode(lambda n: "t" if n.name == "aten_add_tensor" else None, after)
    with pytest.raises(compiler.PartitionError, match=message):
        manager.to_backend(choose)
    assert str(manager.exported_program()) == text
    if "should not modify" in message:
        with pytest.raises(AssertionError):  # as documented
            manager.to_backend(choose)
    assert all("delegation_tag" not in n.meta for n in manager.exported_program().graph.nodes)


def test_state_that_is_written_outside_of_its_partition_is_refused() -> None:
    class Copying(nn.Module):
        state: torch.Tensor

        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("state", torch.ones(3))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = self.state.relu()
            self.state.copy_(x.neg())
            return y

    choose = ByNode(lambda n: "t" if "relu" in n.name else None, _tag("b_state"))
    with pytest.raises(
        compiler.PartitionError, match=r"data node \(b_state\).*has user \(aten_copy_default\)"
    ):
        edge(Copying(), torch.randn(3)).to_backend(choose)


def test_cycle_is_refused_and_shown_with_the_users_line() -> None:
    manager = edge(lambda x: x.relu().neg().relu() + 1, torch.randn(3))
    choose = ByNode(lambda n: "part" if "relu" in n.name else None)
    with pytest.raises(compiler.PartitionCycleError) as found:
        manager.to_backend(choose)
    assert "aten_relu_default (part) -> aten_neg_default (not delegated)" in str(found.value)
    assert "programs.py:" in str(found.value)
    assert set(found.value.cycle) == {
        "aten_relu_default",
        "aten_neg_default",
        "aten_relu_default_1",
    }


def test_cycle_through_two_partitions_is_refused() -> None:
    manager = edge(lambda x, y: (x.relu() + y.neg(), y.relu() - x.neg()), *torch.randn(2, 3))
    tags = {"relu": "a", "add": "a", "neg": "b", "sub": "b"}
    with pytest.raises(compiler.PartitionCycleError, match=r"partition a, b would form"):
        manager.to_backend(ByNode(lambda n: tags.get(n.name.split("_")[1])))


def test_what_the_compiler_noted_of_a_node_is_kept() -> None:
    def act(program: Any) -> None:
        for node in program.graph.nodes:
            if node.op == "call_function":
                node.meta = {"val": node.meta["val"], "delegation_tag": "t", "mine": node.name}

    seen: list[Any] = []

    @final
    class MetaBackend(BackendDetails):
        @staticmethod
        def preprocess(edge_program: Any, compile_specs: Any) -> PreprocessResult:
            del compile_specs
            seen.extend(n.meta for n in edge_program.graph.nodes if n.op == "call_function")
            return PreprocessResult(b"")

    spec = DelegationSpec("MetaBackend", [])
    edge(lambda x: x.relu().sin(), torch.ones(2)).to_backend(ByNode(lambda _: "t", act, t=spec))
    assert [meta["debug_handle"] for meta in seen] == [1, 2]
    assert [meta["mine"] for meta in seen] == ["aten_relu_default", "aten_sin_default"]
    assert all("programs.py" in meta["stack_trace"] for meta in seen)


SETTINGS: dict[str, Any] = {
    "nothing": (None, "compile_specs is None, not a list of CompileSpec"),
    "text": (["fast"], "'fast' is not a CompileSpec"),
    "key of bytes": ([CompileSpec(b"k", b"")], "needs a string as key"),  # pyright: ignore[reportArgumentType]
}


@pytest.mark.parametrize("kind", SETTINGS)
def test_settings_that_are_none_are_one_error(kind: str) -> None:
    specs, message = SETTINGS[kind]
    manager = edge(torch.relu, torch.ones(2))
    choose = ByNode(lambda _: "t", t=DelegationSpec("NameBackend", specs))
    with pytest.raises(compiler.PartitionError, match=f"tag t of ByNode: .*{message}"):
        manager.to_backend(choose)
    with pytest.raises(compiler.CompileError, match=message):
        to_backend("NameBackend", manager.exported_program(), specs)


@pytest.mark.parametrize("value", [None, "", b"", b"fast", bytearray(b"fast"), "fast", 5, ["a"]])
def test_backend_is_given_any_value_of_a_setting_and_only_bytes_go_into_a_file(value: Any) -> None:
    seen: list[Any] = []

    @final
    class SettingsBackend(BackendDetails):
        @staticmethod
        def preprocess(edge_program: Any, compile_specs: Any) -> PreprocessResult:
            del edge_program
            seen.extend(compile_specs)
            return PreprocessResult(b"")

    spec = DelegationSpec("SettingsBackend", [CompileSpec("k", value)])
    manager = edge(torch.relu, torch.ones(2)).to_backend(ByNode(lambda _: "t", t=spec))
    assert [(one.key, one.value) for one in seen] == [("k", value)]
    if value and not isinstance(value, (bytes, bytearray)):
        with pytest.raises(TypeError, match=r"setting 'k' of SettingsBackend is .*encode it"):
            manager.to_executorch()
        return
    (delegate,) = decode(manager.to_executorch().buffer).plans[0].delegates
    assert bytes(delegate.compile_specs[0].value) == bytes(value or b"")


def test_cycle_through_what_is_delegated_already_says_so() -> None:
    manager = edge(lambda x: x.relu().neg().relu(), torch.randn(3))
    once = manager.to_backend(ByNode(lambda n: "first" if "neg" in n.name else None))
    with pytest.raises(compiler.PartitionCycleError) as found:
        once.to_backend(ByNode(lambda _: "all"))
    assert "relu_default (all) -> executorch_call_delegate (delegated already)" in str(found.value)
    rest = once.to_backend(SteeredPartitioner(ByNode(lambda _: "all"), PartitionRules()))
    assert calls(rest.exported_program()).count("executorch_call_delegate") == 3


RESULTS = {
    "nothing": (lambda _: None, "returned None, not a PartitionResult"),
    "no tags": (lambda ep: PartitionResult(ep, None), "needs a `partition_tags` field"),  # pyright: ignore[reportArgumentType]
    "no spec": (lambda ep: PartitionResult(ep, {"t": "NameBackend"}), "not a tag and a Delegation"),  # pyright: ignore[reportArgumentType]
}


@pytest.mark.parametrize("steered", [False, True])
@pytest.mark.parametrize("kind", RESULTS)
def test_partitioner_that_returns_no_result_is_one_error(kind: str, steered: bool) -> None:
    act, message = RESULTS[kind]

    class Wrong(Partitioner):
        def partition(self, exported_program: Any) -> Any:
            return act(exported_program)

    with pytest.raises(compiler.PartitionError, match=message):
        edge(torch.relu, torch.ones(2)).to_backend(_steered(Wrong(), steered))


def _steered(partitioner: Partitioner, steered: bool) -> Partitioner:
    """Return a partitioner as a command line has it, below rules, or as it is."""
    return SteeredPartitioner(partitioner, PartitionRules()) if steered else partitioner


def test_partitioner_that_raises_is_not_hidden() -> None:
    class Raising(Partitioner):
        def partition(self, exported_program: Any) -> Any:
            raise LookupError("of its own")

    with pytest.raises(LookupError, match="of its own"):
        edge(torch.relu, torch.ones(2)).to_backend(Raising())


def test_what_is_no_partitioner_is_refused() -> None:
    program = exported(torch.relu, torch.ones(2))
    with pytest.raises(compiler.PartitionError, match="expected a Partitioner, found str"):
        to_edge_transform_and_lower(program, partitioner=["xnnpack"])

    class Wrong(ByNode):
        def ops_to_not_decompose(self, ep: Any) -> Any:
            return torch.ops.aten.linear.default

    with pytest.raises(compiler.PartitionError, match="not a list of operators and a filter"):
        to_edge_transform_and_lower(program, partitioner=Wrong(lambda _: None))
    with pytest.raises(compiler.PartitionError, match=r"Wrong returned .*not a list of operators"):
        to_edge_transform_and_lower(program, partitioner=_steered(Wrong(lambda _: None), True))


def test_backend_that_is_not_there_is_named() -> None:
    program = edge(torch.relu, torch.ones(2)).exported_program()
    with pytest.raises(NotImplementedError, match=r"Backend Absent was not found\."):
        to_backend("Absent", program, [])
    with pytest.raises(NotImplementedError, match=r"Backend Absent was not found\."):
        to_backend(program, ByNode(lambda _: "t", t=DelegationSpec("Absent", [])))


@pytest.mark.parametrize("rubbish", RUBBISH)
def test_backend_that_returns_rubbish_is_named_with_its_partition(rubbish: str) -> None:
    spec = DelegationSpec("NameBackend", [CompileSpec("rubbish", rubbish.encode())])
    with pytest.raises(compiler.BackendError, match=r"backend NameBackend returned .* partition t"):
        edge(torch.relu, torch.ones(2)).to_backend(ByNode(lambda _: "t", t=spec))


@final
class RubbishTogether(BackendDetails):
    """Returns what it is told to, for all methods at once."""

    answer: Any = None

    @staticmethod
    def preprocess(edge_program: Any, compile_specs: Any) -> PreprocessResult:
        raise AssertionError("it sees all methods together")

    @classmethod
    def preprocess_multimethod(cls, edge_programs: Any, compile_specs: Any) -> Any:
        return cls.answer


@final
class NeuropilotBackend(BackendDetails):
    """Fails under the name of a vendor."""

    @staticmethod
    def preprocess(edge_program: Any, compile_specs: Any) -> PreprocessResult:
        raise ValueError("no")


def test_failure_of_a_vendor_says_where_its_known_traps_are() -> None:
    choose = ByNode(lambda _: "t", t=DelegationSpec("NeuropilotBackend", []))
    with pytest.raises(compiler.BackendError, match=r"no \(known traps: etscope backends sh"):
        edge(torch.relu, torch.ones(2)).to_backend(choose)


TOGETHER = {
    "nothing": (None, "returned results None for parts"),
    "nothing of a method": ({"forward": None}, r"returned results \{'forward': None\} for parts"),
    "a text": ({"forward": "a"}, r"results \{'forward': 'a'\} for parts \{'forward': 1\}"),
    "too many": ({"forward": [1, 2]}, r"results \{'forward': 2\} for parts \{'forward': 1\}"),
    "another method": ({"backward": [1]}, r"results \{'backward': 1\} for parts"),
    "no result": ({"forward": [b""]}, "returned bytes for partition t of forward"),
}


@pytest.mark.parametrize("kind", TOGETHER)
def test_rubbish_for_all_methods_is_one_error(kind: str) -> None:
    RubbishTogether.answer, message = TOGETHER[kind]
    choose = ByNode(lambda _: "t", t=DelegationSpec("RubbishTogether", []))
    with pytest.raises(compiler.BackendError, match=message):
        edge(torch.relu, torch.ones(2)).to_backend(choose)


def test_backend_that_raises_is_named_with_the_nodes_and_the_users_line() -> None:
    spec = DelegationSpec("NameBackend", [CompileSpec("raise", b"out of everything")])
    manager = edge(lambda x: x.relu(), torch.ones(2))
    with pytest.raises(compiler.BackendError) as found:
        manager.to_backend(ByNode(lambda _: "t", t=spec))
    text = str(found.value)
    assert "backend NameBackend failed on partition t (aten_relu_default" in text
    assert "programs.py:" in text
    assert text.endswith("ValueError: out of everything")
    assert calls(manager.exported_program()) == ["aten.relu.default"]


def test_backend_made_from_a_backend_is_refused() -> None:
    from tests.compiler.delegation import NameBackend

    with pytest.raises(TypeError, match="doesn't support nested backend, 'NameBackend'"):
        type("Nested", (NameBackend,), {})
    assert "Nested" not in [backend.__name__ for backend in BackendDetails.__subclasses__()]


def test_to_backend_of_something_else_says_what_it_takes() -> None:
    with pytest.raises(TypeError, match="a backend id, an ExportedProgram or a Method"):
        to_backend(3)
