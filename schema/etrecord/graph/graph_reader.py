"""One graph of the serde JSON: placeholders, calls, output, nested graphs."""

from __future__ import annotations

import re
from types import MappingProxyType

from schema.errors import FormatError
from schema.etrecord.graph.arguments import HIGHER_ORDER_ARGUMENTS
from schema.etrecord.graph.graph_values import complete_values, read_placeholder, read_values
from schema.etrecord.graph.json_text import Json
from schema.etrecord.graph.names import FxNames, short_target
from schema.etrecord.graph.shared import Shared
from schema.etrecord.graph.signature import USER_INPUT, USER_OUTPUT, Signature, Slot
from schema.etrecord.graph.unions import BROKEN, sequence, text, unfold
from schema.graph import Argument, Graph, GraphNode, GraphValue, NodeKind
from schema.objects.plural import plural

ALLOCATION = "memory.alloc"
_CALL_DELEGATE = "executorch_call_delegate"
_WRAPS_WRITES = ("higher_order.auto_functionalized", "higher_order.auto_functionalized_v2")
_MAX_EXPANSIONS = 100_000  # of a list of values that is read
_UNUSED = re.compile(r"(.+)_unused_\d+")


class GraphReader:
    """Reads one graph; nested graphs get separate readers."""

    def __init__(self, shared: Shared, signature: Signature | None = None) -> None:
        self._shared = shared
        self._signature = signature or Signature()
        self._nodes: list[GraphNode] = []
        self._values: dict[str, GraphValue] = {}
        self._subgraphs: dict[str, Graph] = {}
        self._expansions_left = _MAX_EXPANSIONS
        self._lists: dict[str, tuple[str, ...]] = {}
        self._latest: dict[str, str] = {}
        self._names = FxNames()
        self._taken: set[str] = set()
        self._unread = 0

    def read(self, name: str, tree: Json) -> Graph:
        """Return the graph of its JSON, which is emptied on the way."""
        self._values, symbols = read_values(tree, self._shared)
        inputs = self._placeholders(tree.get("inputs") or ())
        nodes = sequence(tree["nodes"])
        for index, node in enumerate(nodes):
            nodes[index] = None
            if isinstance(node, dict):
                self._guarded(node, index)
            else:  # counted without an exception, as a hostile file can have millions
                self._unread += 1
        outputs = self._output(tree.get("outputs") or (), tree.get("is_single_tensor_return"))
        complete_values(self._nodes, self._values)
        if self._unread:
            self._shared.note(f"{plural(self._unread, 'node')} of {name} cannot be read")
        attributes = {"symbols": MappingProxyType(symbols)} if symbols else {}
        return Graph(
            name,
            tuple(self._nodes),
            MappingProxyType(self._values),
            inputs,
            outputs,
            MappingProxyType(self._subgraphs),
            MappingProxyType(attributes),
        )

    def _placeholders(self, inputs: Json) -> tuple[str, ...]:
        """Return the names of the user inputs."""
        user: list[str] = []
        for index, entry in enumerate(inputs):
            try:
                node, slot = read_placeholder(entry, index, self._signature, self._values)
            except BROKEN:
                self._unread += 1
                continue
            if node.name in self._taken:
                self._unread += 1
                continue
            self._add(node)
            if slot.kind in (USER_INPUT, "constant_input"):
                user.append(node.name)
        return tuple(user)

    def _output(self, outputs: Json, single: Json) -> tuple[str, ...]:
        args: list[Argument] = []
        slots: list[Slot] = []
        user: list[str] = []
        for index, entry in enumerate(outputs):
            try:
                argument = self._shared.arguments.read("", entry, self._subgraph)
            except BROKEN:
                argument = Argument("", (), "unreadable")
                self._unread += 1
            slot = self._signature.output(index)
            args.append(argument)
            slots.append(slot)
            if slot.kind == USER_OUTPUT:
                user += argument.values
        attributes: dict[str, object] = {
            "output_kinds": tuple([slot.kind for slot in slots]),
            "output_targets": tuple([slot.target for slot in slots]),
        }
        if single:
            attributes["single"] = True
        shown = MappingProxyType(attributes)
        name = self._free("output")
        self._add(GraphNode(name, NodeKind.OUTPUT, "output", tuple(args), attributes=shown))
        return tuple(user)

    # ---- calls
    def _guarded(self, tree: Json, index: int) -> None:
        try:
            self._call(tree)
        except FormatError as error:
            self._unread += 1
            self._shared.note(f"node {index} cannot be read: {error}")
        except BROKEN:
            self._unread += 1

    def _call(self, tree: Json) -> None:
        raw = _raw_target(tree["target"])
        target = short_target(raw)
        found = self._shared.sources.read(tree.get("metadata") or {})
        attributes = found.extras
        attributes["raw_target"] = raw
        subgraphs: list[str] = []
        if target.endswith(_CALL_DELEGATE):
            args = self._delegate_arguments(tree["inputs"], subgraphs, attributes)
            kind = NodeKind.DELEGATE
        else:
            args = self._arguments(tree["inputs"], target, subgraphs)
            kind = NodeKind.CONTROL if subgraphs else NodeKind.CALL
            target = _writer(target, args)
        if target == ALLOCATION:
            self._shared.mutated = True
        entries: Json = tree.get("outputs") or ()
        outputs, layout = _outputs(entries)
        if layout is None and outputs and unfold(entries[0])[0] != "as_tensor":
            attributes["scalar_output"] = True
        if layout is not None:
            attributes["outputs"] = layout
            self._lists[str(tree.get("name") or "")] = outputs
        name = self._node_name(tree.get("name"), raw, outputs, layout is None)
        node = GraphNode(
            name,
            kind,
            target,
            self._without_lists(args) if self._lists else args,
            outputs,
            found.debug_handle,
            found.modules,
            found.stack_trace,
            MappingProxyType(attributes),
            tuple(subgraphs),
            found.from_node,
        )
        self._add(node)

    def _arguments(self, inputs: Json, target: str, subgraphs: list[str]) -> tuple[Argument, ...]:
        read = self._shared.arguments.read

        def nested(name: str, tree: Json) -> str:
            subgraphs.append(self._subgraph(name, tree))
            return subgraphs[-1]

        names = HIGHER_ORDER_ARGUMENTS.get(target, ())
        args: list[Argument] = []
        for index, entry in enumerate(inputs):
            name = entry["name"] or (names[index] if index < len(names) else "")
            args.append(read(text(name), entry["arg"], nested))
        return tuple(args)

    def _without_lists(self, args: tuple[Argument, ...]) -> tuple[Argument, ...]:
        """Return the arguments with a node that has several outputs replaced by those outputs."""
        if not any(name in self._lists for arg in args for name in arg.values):
            return args
        return tuple([self._without_list(arg) for arg in args])

    def _without_list(self, arg: Argument) -> Argument:
        flat: list[str] = []
        for name in arg.values:
            built = self._lists.get(name, ()) if name not in self._values else ()
            if built and len(built) <= self._expansions_left:
                self._expansions_left -= len(built)
                flat += built
            else:
                flat.append(name)
        return Argument(arg.name, tuple(flat), arg.literal)

    def _delegate_arguments(
        self, inputs: Json, subgraphs: list[str], attributes: dict[str, object]
    ) -> tuple[Argument, ...]:
        """Return the arguments of a delegate call; the first is the lowered module as a string."""
        name = text(inputs[0]["name"]) or "lowered_module"
        source = text(unfold(inputs[0]["arg"])[1])
        inputs[0] = None
        try:
            module = self._shared.lowered(name, source)
        except (*BROKEN, FormatError) as error:
            self._shared.note(f"the lowered module {name} cannot be read: {str(error)[:200]}")
            first = Argument(name)
        else:
            subgraphs.append(self._keep(name, module.original))
            attributes["lowered_module"] = module
            attributes["backend_id"] = module.backend_id
            first = Argument(name, (), module.backend_id)
        return (first, *self._arguments(inputs[1:], "", subgraphs))

    def _node_name(self, name: Json, raw: str, outputs: tuple[str, ...], single: bool) -> str:
        """Return the name of a node; before release 1.0 it is that of its only output."""
        if name:
            return self._free(text(name))
        if single and outputs:
            return self._free(outputs[0])
        for output in outputs:
            if match := _UNUSED.fullmatch(output):
                return self._free(match[1])
        return self._free(self._names.of_target(raw))

    def _free(self, name: str) -> str:
        if name not in self._taken:
            return name
        self._shared.note(f"several nodes are named {name[:100]}")
        while name in self._taken:
            name = self._names.create(name)
        return name

    def _add(self, node: GraphNode) -> None:
        self._taken.add(node.name)
        self._nodes.append(node)

    # ---- nested graphs
    def _subgraph(self, name: str, tree: Json) -> str:
        return self._keep(name, GraphReader(self._shared).read(name, tree))

    def _keep(self, name: str, graph: Graph) -> str:
        """Store a nested graph and return its name; one that is used twice is stored once."""
        latest = self._latest.get(name, name)
        if latest in self._subgraphs and self._subgraphs[latest] != graph:
            latest = f"{name}_{len(self._subgraphs)}"
            while latest in self._subgraphs:
                latest += "_"
        self._latest[name] = latest
        self._subgraphs[latest] = graph
        return latest


def _writer(target: str, args: tuple[Argument, ...]) -> str:
    """Return the operator that writes to its arguments where torch has wrapped its call."""
    called = args[0].literal if args and target in _WRAPS_WRITES else None
    return called if isinstance(called, str) else target


def _raw_target(target: Json) -> str:
    """Return the operator as written; early files wrapped it with a version."""
    return text(target["name"] if isinstance(target, dict) else target)


def _outputs(outputs: Json) -> tuple[tuple[str, ...], tuple[object, ...] | None]:
    """Return the names of all outputs and, unless there is one plain output, their nesting.

    In the nesting a list is a tuple of names and an absent output is None.
    """
    layout: list[object] = []
    flat: list[str] = []
    for output in outputs:
        tag, value = unfold(output)
        if tag == "as_tensors":
            names = tuple([text(item["name"]) for item in value])
            layout.append(names)
            flat += names
        elif tag == "as_none":
            layout.append(None)
        else:
            name = text(value.get("name") or value["as_name"])
            layout.append(name)
            flat.append(name)
    plain = len(layout) == 1 and isinstance(layout[0], str)
    return tuple(flat), None if plain or not layout else tuple(layout)
