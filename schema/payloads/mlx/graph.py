"""An MLX payload as the graph that every view understands.

Slots are memory, not values: a temporary is written again as soon as it is not read any more, and
buffers are updated in place. Each write of a slot is therefore a new value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, cast

from schema.dtypes.scalar_type import scalar_type
from schema.errors import FormatError, Issue, Severity
from schema.graph import Argument, Dim, Graph, GraphNode, GraphValue, NodeKind, TensorMeta
from schema.payloads.mlx.operations import COLUMNS, MlxOperation, OperationColumn
from schema.payloads.mlx.tables import (
    SLOT_KINDS,
    TENSOR_SLOT,
    Chain,
    Instruction,
    MLXGraph,
    MlxTensor,
    SlotVariant,
)
from schema.payloads.model import NO_FACTS, Constant

WHERE = "MLX payload"
_LONG = 400  # characters of a string among the facts; a kernel's source is far longer
Slot = tuple[str, int]  # tensor or value, index
Effect = tuple[frozenset[Slot], frozenset[Slot]]  # read from outside, written
_NO_EFFECT: Effect = (frozenset(), frozenset())
_MOST_PASSED = 2_000_000  # slots that chains pass on to those that run them


@dataclass(frozen=True, slots=True)
class _Use:
    """The slots and chains that an operation uses.

    Attributes:
        arguments: slots read, or a literal, by field
        writes: slots written
        facts: all other fields
        chains: chains it runs
    """

    arguments: tuple[tuple[str, tuple[Slot, ...], object], ...] = ()
    writes: tuple[Slot, ...] = ()
    facts: Mapping[str, object] = field(default_factory=lambda: NO_FACTS)
    chains: tuple[int, ...] = ()

    @property
    def reads(self) -> tuple[Slot, ...]:
        return tuple(slot for _, slots, _ in self.arguments for slot in slots)


def kind_of(instruction: Instruction) -> str:
    """Return the name of an instruction's operation."""
    op = instruction.op
    return op.kind if isinstance(op, MlxOperation) else f"Unknown({op.tag})" if op else "None"


def node_name(graph: MLXGraph, chain: int, index: int) -> str:
    """Return the name of a node: kind and place."""
    kind = kind_of(graph.instruction_chains[chain].instructions[index])
    main = chain == graph.main_chain_idx
    return f"{kind}_{index}" if main else f"{kind}_{chain}.{index}"


def to_graph(graph: MLXGraph, constants: Mapping[int, Constant], issues: list[Issue]) -> Graph:
    """Return the main chain as a graph; the other chains are its subgraphs.

    Args:
        graph: the payload
        constants: constants by tensor slot
        issues: inconsistencies are added here
    """
    uses = [tuple(map(_use, chain.instructions)) for chain in graph.instruction_chains]
    purse = _Purse()
    shared = _Shared(graph, constants, _effects(uses, purse), purse)
    inputs = tuple(map(_slot, graph.input_map))
    outputs = tuple(map(_slot, graph.output_map))
    if graph.main_chain_idx >= len(uses):
        text = f"the main chain {graph.main_chain_idx} is not among the {len(uses)} chains"
        issues.append(Issue(Severity.ERROR, WHERE, text))
        empty = _ChainReader(shared, {})
        names = tuple(empty.read(slot) for slot in (*inputs, *outputs))
        return Graph("MLX", (), empty.values, names[: len(inputs)], names[len(inputs) :])
    built = {
        f"chain_{number}": shared.graph(number, rows, f"chain_{number}", (), ())
        for number, rows in enumerate(uses)
        if number != graph.main_chain_idx
    }
    main = shared.graph(graph.main_chain_idx, uses[graph.main_chain_idx], "MLX", inputs, outputs)
    lost = {chain for row in uses for use in row for chain in use.chains} - shared.inner
    if lost:
        text = f"an operation runs chain {min(lost)}, which is not one that can be run"
        issues.append(Issue(Severity.ERROR, WHERE, text))
    return Graph("MLX", main.nodes, main.values, main.inputs, main.outputs, built)


def _slot(variant: SlotVariant) -> Slot:
    return ("tensor" if variant.slot_type == TENSOR_SLOT else "value", variant.idx)


def _use(instruction: Instruction) -> _Use:
    op = instruction.op
    if not isinstance(op, MlxOperation):
        return _Use()
    arguments: list[tuple[str, tuple[Slot, ...], object]] = []
    writes: list[Slot] = []
    facts: dict[str, object] = {}
    chains: list[int] = []
    for column in COLUMNS[op.kind]:
        item = op.fields[column.name]
        if item is None or item == ():
            continue
        if column.code.startswith("*"):
            chains.append(item)
        elif column.code.strip("[]") not in "tvdgwk":
            facts[column.name] = _fact(column, item)
        else:
            slots, literal = _operands(column, item)
            if column.is_output:
                writes += slots
            if column.is_input:
                arguments.append((column.name, slots, literal))
    return _Use(tuple(arguments), tuple(writes), facts, tuple(chains))


def _fact(column: OperationColumn, item: Any) -> object:  # noqa: ANN401 - a number, a text or several
    if column.code == "y" and column.name != "template_arg_kinds":
        return scalar_type(item).name
    if isinstance(item, str) and len(item) > _LONG:
        return f"{item[:_LONG]}…"
    return item


def _operands(column: OperationColumn, item: Any) -> tuple[tuple[Slot, ...], object]:  # noqa: ANN401
    """Return the slots a field refers to, and its literal if it refers to none."""
    code = column.code.strip("[]")
    items = cast("tuple[Any, ...]", item if isinstance(item, tuple) else (item,))
    if code in "tv":
        kind = "tensor" if code == "t" else "value"
        return tuple((kind, number) for number in items), None
    found = [_operand(code, one) for one in items]
    slots = tuple(slot for slot, _ in found if slot is not None)
    if not slots:
        literals = tuple(literal for _, literal in found)
        return (), literals if isinstance(item, tuple) else literals[0]
    mixed = [literal if slot is None else f"{slot[0]}_{slot[1]}" for slot, literal in found]
    return slots, tuple(mixed) if len(slots) < len(found) else None


def _operand(code: str, item: Mapping[str, Any]) -> tuple[Slot | None, object]:
    kind = item.get("kind", int(item.get("is_vid", False)))
    if kind == 1:
        return ("value", item["vid"] or 0), None
    if kind == 2 or code == "w":
        return ("tensor", item["tid"] or 0), None
    return None, item.get("literal")


class _Purse:
    """Counts the slots that chains pass on, which could be as many as chains times slots."""

    def __init__(self) -> None:
        self._left = _MOST_PASSED

    def spend(self, slots: int) -> None:
        """Charge slots.

        Raises: FormatError when there were too many
        """
        self._left -= slots
        if self._left < 0:
            raise FormatError(f"at most {_MOST_PASSED} slots passed on by chains", "more")


def _effects(uses: list[tuple[_Use, ...]], purse: _Purse) -> list[Effect]:
    """Return the slots that each chain reads from outside and writes, chains it runs included.

    A chain that runs itself, which no runtime would survive, is followed once.
    """
    done: dict[int, Effect] = {}
    stack = [(number, False) for number in range(len(uses))]
    entered: set[int] = set()
    while stack:
        number, leaving = stack.pop()
        if leaving:
            done[number] = _effect(uses[number], done, purse)
        elif number not in entered:
            entered.add(number)
            inner = {chain for use in uses[number] for chain in use.chains}
            stack.append((number, True))
            stack += [(chain, False) for chain in sorted(inner) if 0 <= chain < len(uses)]
    return [done[number] for number in range(len(uses))]


def _effect(rows: tuple[_Use, ...], done: Mapping[int, Effect], purse: _Purse) -> Effect:
    reads: set[Slot] = set()
    writes: set[Slot] = set()
    merged: set[int] = set()
    for use in rows:
        reads |= set(use.reads) - writes
        for chain in use.chains:
            below, above = done.get(chain, _NO_EFFECT)
            if chain not in merged:  # its reads and writes are included, should it run again
                merged.add(chain)
                purse.spend(len(below) + len(above))
                reads |= below - writes - set(use.writes)
                writes |= above
        writes |= set(use.writes)
    purse.spend(len(reads) + len(writes))
    return frozenset(reads), frozenset(writes)


class _Shared:
    """State shared by all chains of one payload."""

    def __init__(
        self,
        graph: MLXGraph,
        constants: Mapping[int, Constant],
        effects: list[Effect],
        purse: _Purse,
    ) -> None:
        self.payload = graph
        self.constants = constants
        self.effects = effects
        self.purse = purse
        self.inner = set(range(len(effects))) - {graph.main_chain_idx}
        self.metas = [_meta(tensor) for tensor in graph.tensor_meta]
        self.kinds = {
            variant.idx: SLOT_KINDS[variant.slot_type]
            for variant in (*graph.input_map, *graph.output_map)
            if 0 < variant.slot_type < len(SLOT_KINDS)
        }

    def graph(
        self,
        number: int,
        uses: tuple[_Use, ...],
        name: str,
        inputs: tuple[Slot, ...],
        outputs: tuple[Slot, ...],
    ) -> Graph:
        """Return a chain as a graph."""
        reader = _ChainReader(self, _last_reads(uses, outputs, self.chains_of))
        entering = tuple(map(reader.read, inputs))
        nodes = tuple(
            reader.node(node_name(self.payload, number, index), index, use, instruction)
            for index, (use, instruction) in enumerate(
                zip(uses, self.payload.instruction_chains[number].instructions, strict=True)
            )
        )
        leaving = tuple(map(reader.read, outputs))
        return Graph(name, nodes, reader.values, entering, leaving)

    def chains_of(self, use: _Use, which: int) -> tuple[Slot, ...]:
        """Return the slots that the chains of an operation read (0) or write (1)."""
        known = [chain for chain in use.chains if 0 <= chain < len(self.effects)]
        found: set[Slot] = set()
        for chain in known:
            self.purse.spend(len(self.effects[chain][which]))
            found |= self.effects[chain][which]
        return tuple(sorted(found))

    def value(self, slot: Slot, name: str) -> GraphValue:
        """Return the value of a slot under a name."""
        kind, number = slot
        if kind == "value":
            return GraphValue(name, kind=self.kinds.get(number, "other"))
        meta = self.metas[number] if number < len(self.metas) else None
        constant = self.constants.get(number)
        if constant is None:
            return GraphValue(name, meta)
        return GraphValue(name, meta, constant=constant.name, constant_bytes=constant.nbytes)


def _last_reads(
    uses: tuple[_Use, ...],
    outputs: tuple[Slot, ...],
    chains_of: Callable[[_Use, int], tuple[Slot, ...]],
) -> dict[Slot, int]:
    """Return the last instruction that reads a slot."""
    last: dict[Slot, int] = {}
    for index, use in enumerate(uses):
        for slot in (*use.reads, *chains_of(use, 0)):
            last[slot] = index
    return last | dict.fromkeys(outputs, len(uses))


class _ChainReader:
    """Names the values of one chain while its instructions write their slots."""

    def __init__(self, shared: _Shared, last: Mapping[Slot, int]) -> None:
        self.values: dict[str, GraphValue] = {}
        self._shared = shared
        self._last = last
        self._names: dict[Slot, str] = {}
        self._writes: dict[Slot, int] = {}

    def read(self, slot: Slot) -> str:
        """Return the name of a slot's value at this point."""
        name = self._names.get(slot)
        return name if name is not None else self._new(slot)

    def _new(self, slot: Slot) -> str:
        count = self._writes.get(slot, 0)
        self._writes[slot] = count + 1
        name = f"{slot[0]}_{slot[1]}" + (f".{count}" if count else "")
        self._names[slot] = name
        self.values[name] = self._shared.value(slot, name)
        return name

    def node(self, name: str, index: int, use: _Use, instruction: Instruction) -> GraphNode:
        """Return the node of an instruction."""
        arguments = [
            Argument(column, tuple(map(self.read, slots)), literal)
            for column, slots, literal in use.arguments
        ]
        own = {*use.reads, *use.writes}
        seen = [slot for slot in self._shared.chains_of(use, 0) if slot not in own]
        if seen:
            arguments.append(Argument("chains", tuple(map(self.read, seen))))
        written = list(use.writes)
        for slot in self._shared.chains_of(use, 1):
            if self._last.get(slot, -1) > index and slot not in written:
                written.append(slot)
        return GraphNode(
            name,
            NodeKind.CONTROL if use.chains else NodeKind.CALL,
            kind_of(instruction),
            tuple(arguments),
            tuple(map(self._new, written)),
            attributes=MappingProxyType(dict(use.facts)),
            subgraphs=tuple(
                f"chain_{chain}" for chain in use.chains if chain in self._shared.inner
            ),
        )


def _meta(tensor: MlxTensor) -> TensorMeta:
    sizes: tuple[Dim, ...] = tuple(
        dim.value if dim.value >= 0 else _bounds(dim.min_value, dim.max_value)
        for dim in tensor.shape
    )
    name = scalar_type(tensor.scalar_type).name
    return TensorMeta(tensor.scalar_type, sizes, tensor.dim_order, name)


def _bounds(least: int, most: int) -> str:
    return f"{least}..{most}" if most >= 0 else f"{least}.."


def instruction_counts(chains: tuple[Chain, ...]) -> int:
    """Return the number of instructions of all chains."""
    return sum(len(chain.instructions) for chain in chains)
