"""Backends, partitioners and graphs for tests of partition and delegation."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import Any, final

import torch
from torch import nn
from torch.export import ExportedProgram
from torch.export.graph_signature import (
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    TensorArgument,
)
from torch.fx.passes.operator_support import OperatorSupportBase

from compiler import (
    BackendDetails,
    CompileSpec,
    DelegationSpec,
    EdgeProgramManager,
    NamedDataStore,
    NamedDataStoreOutput,
    Partitioner,
    PartitionResult,
    PreprocessResult,
    ops,
    to_edge,
)
from compiler.edge.verifier import EdgeVerifier
from compiler.interface.named_data import DataEntry
from tests.compiler.programs import Apply

aten = ops.edge.aten


@final
class NameBackend(BackendDetails):
    """Its payload names the operators; the settings choose how it fails."""

    @staticmethod
    def preprocess(
        edge_program: ExportedProgram, compile_specs: list[CompileSpec]
    ) -> PreprocessResult:
        nodes = [n for n in edge_program.graph.nodes if n.op == "call_function"]
        names = [n.target.__name__ for n in nodes if hasattr(n.target, "_schema")]
        for spec in compile_specs:
            if spec.key == "raise":
                raise ValueError(spec.value.decode())
            if spec.key == "rubbish":
                return RUBBISH[spec.value.decode()]
        handles = {n.name: (n.meta["debug_handle"],) for n in nodes if n.meta.get("debug_handle")}
        return PreprocessResult(" ".join(names).encode(), handles)


@final
class SecondBackend(BackendDetails):
    """Like the other; it changes its copy of the program, weights included."""

    @staticmethod
    def preprocess(
        edge_program: ExportedProgram, compile_specs: list[CompileSpec]
    ) -> PreprocessResult:
        names = [n.name for n in edge_program.graph.nodes if n.op == "call_function"]
        for tensor in edge_program.state_dict.values():
            with torch.no_grad():
                tensor.zero_()
        for node in reversed(edge_program.graph.nodes):
            if node.op == "call_function":
                node.meta.clear()
                node.args = ()
        return PreprocessResult(f"second: {' '.join(names)}".encode())


@final
class SharingBackend(BackendDetails):
    """Sees all methods together; weights are blobs that the payloads share by key."""

    seen: list[dict[str, list[int]]] = []  # noqa: RUF012

    @staticmethod
    def preprocess(
        edge_program: ExportedProgram, compile_specs: list[CompileSpec]
    ) -> PreprocessResult:
        store = NamedDataStore()
        for name, tensor in edge_program.state_dict.items():
            store.add_named_data(name, tensor.detach(), alignment=64)
        count = len(edge_program.state_dict)
        return PreprocessResult(f"{count} keys".encode(), None, store.get_named_data_store_output())

    @classmethod
    def preprocess_multimethod(
        cls,
        edge_programs: dict[str, list[ExportedProgram]],
        compile_specs: dict[str, list[list[CompileSpec]]],
    ) -> dict[str, list[PreprocessResult]]:
        cls.seen.append(
            {name: [len(p.graph.nodes) for p in ps] for name, ps in edge_programs.items()}
        )
        return super().preprocess_multimethod(edge_programs, compile_specs)


RUBBISH: dict[str, Any] = {
    "nothing": None,
    "text": PreprocessResult("text"),  # pyright: ignore[reportArgumentType]
    "handles": PreprocessResult(b"", {"a": ("b",)}),  # pyright: ignore[reportArgumentType]
    "mixed": PreprocessResult(b"", {"a": (1,), 2: (2,)}),
    "data": PreprocessResult(b"", None, b""),  # pyright: ignore[reportArgumentType]
    "no buffer": PreprocessResult(b"", None, NamedDataStoreOutput([], {"k": DataEntry(0, 1)}, {})),
    "no bytes": PreprocessResult(b"", None, NamedDataStoreOutput(["text"], {}, {})),  # pyright: ignore[reportArgumentType]
    "no alignment": PreprocessResult(
        b"", None, NamedDataStoreOutput([b""], {}, {"file": {"k": DataEntry(0, 0)}})
    ),
}

Choose = Callable[[torch.fx.Node], str | None]


class ByNode(Partitioner):
    """Tags what a function says, and what else a second function does."""

    def __init__(self, choose: Choose, after: Any = None, **specs: DelegationSpec) -> None:
        super().__init__()
        self.choose, self.after, self.specs = choose, after, specs

    def partition(self, exported_program: ExportedProgram) -> PartitionResult:
        for node in exported_program.graph.nodes:
            tag = self.choose(node) if node.op == "call_function" else None
            if tag:
                node.meta["delegation_tag"] = tag
        tags = {
            n.meta["delegation_tag"]
            for n in exported_program.graph.nodes
            if n.meta.get("delegation_tag")
        }
        if self.after is not None:
            self.after(exported_program)
        default = DelegationSpec("NameBackend", [])
        return PartitionResult(
            exported_program, {t: self.specs.get(t, default) for t in sorted(tags)}
        )


class Only(OperatorSupportBase):
    """Support of some operators, without a word why not others."""

    def __init__(self, *targets: Any) -> None:
        self.targets = targets

    def is_node_supported(self, submodules: Any, node: torch.fx.Node) -> bool:
        return node.op == "call_function" and node.target in self.targets


def exported(function: Any, *inputs: Any, **options: Any) -> ExportedProgram:
    module = function if isinstance(function, nn.Module) else Apply(function)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's own
        return torch.export.export(module.eval(), inputs, **options)


def edge(function: Any, *inputs: Any, **options: Any) -> EdgeProgramManager:
    return to_edge(exported(function, *inputs), **options)


def calls(program: ExportedProgram) -> list[str]:
    """Return the names of the operators a program calls, in order."""
    nodes = (node for node in program.graph.nodes if node.op == "call_function")
    return [getattr(node.target, "__name__", str(node.target)) for node in nodes]


def payloads(manager: EdgeProgramManager, method: str = "forward") -> list[str]:
    module: Any = manager.exported_program(method).graph_module
    return [child.processed_bytes.decode() for _, child in module.named_children()]


def graph_of(edges: Iterable[tuple[int, ...]], targets: Iterable[Any]) -> torch.fx.GraphModule:
    """Return a graph of calls: for each the calls it reads; none, and it reads the input."""
    graph = torch.fx.Graph()
    first = graph.placeholder("x")
    made: list[torch.fx.Node] = []
    for read, target in zip(edges, targets, strict=True):
        args = [made[i] for i in read] or [first]
        made.append(graph.call_function(target, tuple(args)))
    graph.output(tuple(node for node in made if not node.users))
    return torch.fx.GraphModule(nn.Module(), graph)


def long_program(count: int) -> ExportedProgram:
    """Return a program of so many calls: sums of relus, every seventh a sigmoid."""
    with torch._subclasses.FakeTensorMode():
        value = torch.empty(4)
    graph = torch.fx.Graph()
    last = before = graph.placeholder("x")
    last.meta["val"] = value
    for index in range(count):
        target = aten.sigmoid.default if index % 7 == 3 else aten.relu.default
        args = (last,)
        if index % 3 == 2:
            target, args = aten.add.Tensor, (last, before)
        before, last = last, graph.call_function(target, args)
        last.meta = {"val": value, "debug_handle": index + 1}
    graph.output((last,))
    signature = ExportGraphSignature(
        [InputSpec(InputKind.USER_INPUT, TensorArgument("x"), None)],
        [OutputSpec(OutputKind.USER_OUTPUT, TensorArgument(last.name), None)],
    )
    return ExportedProgram(
        nn.Module(), graph, signature, {}, {}, [], constants={}, verifiers=[EdgeVerifier]
    )
