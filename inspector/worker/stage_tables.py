"""Records the graph after each stage of a running compile."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

import torch

from compiler.dialect.delegate_call import executorch_call_delegate
from compiler.errors import source_line
from compiler.partition.reasons import operator_of
from compiler.partition.rules import ancestors
from compiler.pipeline.edge_manager import EdgeProgramManager
from compiler.stages import StageEvent
from inspector.files.stage_log import (
    CALL_DELEGATE,
    EDGE,
    MOST_NODES,
    StageChange,
    StageLog,
    StageNode,
    Step,
    changed,
)

DELEGATE, QUANTIZE = "delegate", "quantize"
_GETITEM = "getitem"
_SHOWN = 3
Graph = tuple[StageNode, ...]


class StageTables:
    """Collects stages with their graphs; ``log`` returns them."""

    def __init__(self) -> None:
        self._steps: list[Step] = []
        self._graphs: list[Graph] = []
        self._latest: dict[str, int | None] = {}
        self._exported: dict[str, int | None] = {}
        self._whole: dict[str, int | None] = {}
        self._nodes = 0
        self._note = ""

    @property
    def log(self) -> StageLog:
        """Return the stages so far."""
        return StageLog(tuple(self._steps), tuple(self._graphs), self._note)

    def observe(self, event: StageEvent) -> None:
        """Handle an event of the compiler's stages."""
        if event.seconds is None:
            return
        modules = dict(event.modules or {})
        if not modules:
            self.plain(event.stage, event.method, event.seconds)
        for number, (method, module) in enumerate(modules.items()):
            seconds = event.seconds if not number else 0.0  # the others took part in the same
            self.take(event.stage, method, module, seconds)

    def plain(self, stage: str, method: str, seconds: float) -> None:
        """Record a stage without a graph."""
        self._steps.append(Step(stage, method, seconds * 1e3))

    def attach(self, stages: tuple[str, ...], method: str, module: torch.fx.GraphModule) -> None:
        """Attach a graph to an earlier stage recorded without one.

        Args:
            stages: candidate names
            method: of the graph
            module: the graph
        """
        for at in reversed(range(len(self._steps))):
            step = self._steps[at]
            if step.stage in stages and step.nodes is None and step.method in ("", method):
                built = self._step(step.stage, method, module, step.time_ms)
                self._steps[at] = built
                return
        self._steps.append(self._step(stages[0], method, module, 0.0))

    def begin_anew(self) -> None:
        """Continue from the graphs before delegation, since the program is delegated again."""
        self._latest |= self._whole
        self._whole = {}

    def complete(self, edge: EdgeProgramManager) -> None:
        """Record the graphs of methods that were not lowered again, since nothing had changed."""
        for method, program in edge.lowered_programs.items():
            if any((one.stage, one.method) == (EDGE, method) for one in self._steps):
                continue
            mine = [one for one in self._steps if (one.stage, one.method) == (DELEGATE, method)]
            at = self._steps.index(mine[0]) if mine else len(self._steps)
            # delegated again: its predecessor is the edge program, not the exported one
            self._steps = [one for one in self._steps if not any(one is own for own in mine)]
            self._latest[method] = self._exported.get(method)
            self._whole.pop(method, None)
            whole, owned = program.graph_module, edge.exported_program(method).graph_module
            time_ms = sum(one.time_ms for one in mine)
            self._steps[at:at] = [
                self._step(EDGE, method, whole, 0.0),
                self._step(DELEGATE, method, owned, time_ms),
            ]

    def take(self, stage: str, method: str, module: torch.fx.GraphModule, seconds: float) -> None:
        """Record a stage and its graph; the first of a method is the exported program."""
        self._steps.append(self._step(stage, method, module, seconds * 1e3))

    def _step(self, stage: str, method: str, module: torch.fx.GraphModule, time_ms: float) -> Step:
        calls = list(_calls(module))
        graph = tuple(_row(node, name) for node, name in calls)
        first = method not in self._latest
        # An edge program always derives from the exported one, even if lowered repeatedly.
        before = self._exported.get(method) if stage == EDGE else self._latest.get(method)
        if stage == DELEGATE:
            self._whole.setdefault(method, before)
        elif stage == EDGE:
            self._whole.pop(method, None)
        after = self._kept(graph, before)
        change = None
        if before is not None and after is not None:
            old = self._graphs[before]
            origins = _exported(calls, old) if stage == EDGE else _owners(calls, old, module)
            change = StageChange(len(graph)) if after == before else changed(old, graph, origins)
        self._latest[method] = after
        if first or stage == QUANTIZE:
            self._exported[method] = after
        return Step(stage, method, time_ms, before, after, len(graph), change)

    def _kept(self, graph: Graph, before: int | None) -> int | None:
        """Return the index of a graph, that of the previous one if they are equal."""
        for known in (before, *range(len(self._graphs))):
            if known is not None and self._graphs[known] == graph:
                return known
        if self._nodes + len(graph) > MOST_NODES:
            self._note = f"graphs beyond {MOST_NODES:,} nodes in all were not kept"
            return None
        self._nodes += len(graph)
        self._graphs.append(graph)
        return len(self._graphs) - 1


def _calls(module: torch.fx.GraphModule, path: str = "") -> Iterator[tuple[torch.fx.Node, str]]:
    """Yield the calls of a graph and of the bodies inside it; without the inside of delegates."""
    for node in module.graph.nodes:
        if node.op == "call_function":
            yield node, f"{path}{node.name}"
        elif node.op == "get_attr":
            inner = getattr(module, str(node.target), None)
            if isinstance(inner, torch.fx.GraphModule) and not _is_lowered(inner):
                yield from _calls(inner, f"{path}{node.target}/")


def _is_lowered(module: Any) -> bool:  # noqa: ANN401 - a module
    return hasattr(module, "original_module")


def _row(node: torch.fx.Node, name: str) -> StageNode:
    handle = node.meta.get("debug_handle")
    value = _values(node.meta.get("val"))
    number = handle if isinstance(handle, int) else 0
    return StageNode(name, _operator(node), value, number, source_line(node))


def _values(value: Any) -> str:  # noqa: ANN401 - of a node
    """Return dtype and shape of each result of a node."""
    if isinstance(value, (list, tuple)):
        found = [_values(one) for one in value]  # pyright: ignore[reportUnknownVariableType]
        return ", ".join(found[:_SHOWN]) + (", …" if len(found) > _SHOWN else "")
    if not isinstance(value, torch.Tensor):
        return "" if value is None else type(value).__name__
    sizes = ", ".join(str(size) for size in value.shape)
    return f"{str(value.dtype).removeprefix('torch.')}[{sizes}]"


def _operator(node: torch.fx.Node) -> str:
    return CALL_DELEGATE if node.target is executorch_call_delegate else operator_of(node)


def _exported(calls: list[tuple[torch.fx.Node, str]], before: Graph) -> dict[str, tuple[str, ...]]:
    """Return the exported node of each node of an edge program."""
    old = {node.name for node in before}
    return {
        name: reported for node, name in calls if (reported := _nearest_ancestor(node, name, old))
    }


def _owners(
    calls: list[tuple[torch.fx.Node, str]], before: Graph, module: torch.fx.GraphModule
) -> dict[str, tuple[str, ...]]:
    """Return the nodes of each new delegate call, and of its results."""
    old: Mapping[str, StageNode] = {node.name: node for node in before}
    found: dict[str, tuple[str, ...]] = {}
    for node, name in calls:
        if node.target is executorch_call_delegate and name not in old:
            found[name] = _inside(node, name, module, old)
        elif name not in old and _is_result(node):
            found[name] = found.get(f"{_path(name)}{node.args[0]}", ())
    return {name: sources for name, sources in found.items() if sources}


def _path(name: str) -> str:
    return name[: name.rfind("/") + 1]


def _is_result(node: torch.fx.Node) -> bool:
    return operator_of(node) == _GETITEM and bool(node.args)


def _nearest_ancestor(node: torch.fx.Node, name: str, old: Collection[str]) -> tuple[str, ...]:
    """Return the nearest ancestor that the graph before has."""
    for source in ancestors(node):
        for known in (f"{_path(name)}{source.name}", source.name):
            if known in old:
                return (known,)
    return ()


def _inside(
    call: torch.fx.Node, name: str, module: torch.fx.GraphModule, old: Mapping[str, StageNode]
) -> tuple[str, ...]:
    """Return the nodes before that are in a delegate now."""
    home: Any = call.args[0]
    owner: Any = module
    for part in [part for part in _path(name).split("/") if part]:
        owner = getattr(owner, part)
    lowered: Any = getattr(owner, str(home.target), None)
    original = getattr(lowered, "original_module", None)
    if original is None:
        return ()
    names = [
        f"{_path(name)}{node.name}" for node in original.graph.nodes if node.op == "call_function"
    ]
    return tuple(one for one in names if one in old)
