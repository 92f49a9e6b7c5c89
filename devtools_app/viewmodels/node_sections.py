"""Groups of facts of the node panel: times, tensors, weights, memory, arguments."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import numpy as np

from inspector.files.session import Session
from inspector.graph.model_graph import COMPILED, ModelGraph, ModelNode
from inspector.graph.node_text import (
    node_title,
    operator_title,
    short_description,
    value_text,
)
from inspector.memory.plan import PlannedValue, analyse_memory
from inspector.profile.attribution import of_steady_set, spread
from inspector.profile.join_index import Related
from inspector.profile.operator_rows import OperatorRow
from inspector.roofline.rows import Limits, RooflineRow, rate_text
from inspector.roofline.work import total
from inspector.tables.facts import Fact, FactGroup, shortened
from inspector.tables.method_facts import CALIBRATE
from inspector.tables.operators import JOIN_REASONS, JOIN_TONES, join_word
from inspector.tables.selection import Selection, SelectionKind, Units, node_selection
from inspector.units import (
    Quantity,
    exact_text,
    format_bytes,
    format_duration,
    format_quantity,
    format_share,
    format_total,
)
from schema.dtypes.operator_dtypes import OperatorDtypes, operator_dtypes
from schema.dtypes.operator_schemas import operator_schema
from schema.graph import GraphNode, GraphValue
from schema.objects.plural import plural

_MOST_ROWS = 6  # of combinations of dtypes that are listed
_NO_RULE = "the verifier has no rule for this operator"
_ARGUMENT = re.compile(r"(?:[^,(\[]|\([^)]*\)|\[[^\]]*\])+")  # commas in brackets do not end one
_HIDDEN = frozenset(
    {"instruction", "chain", "raw_target", "outputs", "debug_handle", "nn_module_stack", "torch_fn"}
)


def time_group(rows: list[OperatorRow], units: Units) -> FactGroup:
    """Return the times of the operators related to the selection."""
    runs = max((len(row.samples_ns) for row in rows if row.samples_ns is not None), default=0)
    title = f"Time, {plural(runs, 'run')}" if runs else "Time"
    if len(rows) == 1:
        return FactGroup(title, tuple(_one_time(rows[0], units)))
    lines = [_short_time(row, units) for row in rows]
    known = [row.mean_ns for row in rows if row.mean_ns is not None]
    if len(known) == len(rows) and rows:
        total = format_total(known, [row.tick_ns for row in rows], units.time)
        lines.insert(0, Fact("together", total, _exact(sum(known))))
    return shortened(title, lines)


def _short_time(row: OperatorRow, units: Units) -> Fact:
    join = join_word(row.link)
    link = None
    if row.event is not None:
        link = Selection(SelectionKind.EVENT, event=row.event, instruction=row.instruction)
    if row.mean_ns is None:
        return Fact(operator_title(row.label), "missing", "its ticks are not time", link=link)
    text = format_duration(row.mean_ns, row.tick_ns, units.time)
    hover = f"mean {_exact(row.mean_ns)}; {JOIN_REASONS[join]}"
    return Fact(operator_title(row.label), text, hover, link=link)


def _one_time(row: OperatorRow, units: Units) -> list[Fact]:
    facts: list[Fact] = []
    if row.samples_ns is None or row.mean_ns is None:
        facts.append(Fact("time", "missing", "its ticks are not time"))
    else:
        steady = of_steady_set(row.samples_ns, row.steady)
        middle, _, _, low, high = (float(one) for one in spread(steady))
        several = len(steady) > 1
        bounded = 0 <= row.mean_ns < row.tick_ns  # so is the share
        share = "" if row.share is None or bounded else f"  {format_share(row.share)}"
        hover = f"{_exact(row.mean_ns)}" + (f", {row.share:.4%} of the method" if row.share else "")
        text = f"{format_duration(row.mean_ns, row.tick_ns, units.time)}{share}"
        facts.append(Fact("mean" if several else "time", text, hover))
        if not np.isnan(middle):
            text = format_duration(middle, row.tick_ns, units.time)
            facts.append(Fact("p50", text, _exact(middle)))
        if several:
            ends = (format_duration(end, row.tick_ns, units.time) for end in (low, high))
            reach = " … ".join(dict.fromkeys(ends))
            facts.append(Fact("min … max", reach, f"{_exact(low)} … {_exact(high)}"))
        if row.kernel_ns is not None:
            text = format_duration(row.kernel_ns, row.tick_ns, units.time)
            facts.append(Fact("kernel, mean", text, _exact(row.kernel_ns)))
    if row.passes > 1:
        facts.append(Fact("passes per run", f"{row.passes:,}"))
    join = join_word(row.link)
    how = "by instruction" if row.kind != "inner" else "inside the delegate"
    facts.append(Fact("matched", how, JOIN_REASONS[join], join, JOIN_TONES.get(join, "muted")))
    return facts


def _exact(nanoseconds: float) -> str:
    return exact_text(nanoseconds, Quantity.TIME)


def work_group(rows: Sequence[RooflineRow], limits: Limits, units: Units) -> FactGroup:
    """Return FLOPs and bytes of the operators related to the selection, and their limit."""
    if not rows:
        return FactGroup("Work")
    work = total(row.work for row in rows)
    if work.flops is None and work.nbytes is None:
        return FactGroup("Work", (Fact("FLOPs", "missing", work.reason),))
    at_most = "at most " if work.bounded else ""
    flops = format_quantity(work.flops, Quantity.OPERATIONS)
    facts = [Fact("FLOPs", f"{at_most if work.flops else ''}{flops}", work.reason)]
    moved = "missing"
    if work.read is not None and work.written is not None:
        read, written = (format_bytes(one, units.size) for one in (work.read, work.written))
        moved = f"{at_most}{read} read, {written} written"
    facts.append(Fact("bytes", moved, "each operand once, the least that has to move"))
    if work.intensity is not None:
        facts.append(Fact("intensity", f"{work.intensity:.3g} FLOPs a byte"))
    if len(rows) == 1 and rows[0].flops_per_s is None and rows[0].without_rate:
        facts.append(Fact("achieved", "missing", rows[0].without_rate))
    elif len(rows) == 1 and rows[0].flops_per_s is not None:
        facts += _limit(rows[0], limits)
    return FactGroup("Work", tuple(facts))


def _limit(row: RooflineRow, limits: Limits) -> list[Fact]:
    facts = [Fact("achieved", rate_text(row))]
    if limits.missing:
        text = f"missing: {limits.missing}"
        facts.append(Fact("of the limit", text, CALIBRATE))
    elif row.share is not None:
        text = f"{format_share(row.share)}, {row.words}"
        facts.append(Fact("of the limit", text, limits.note))
    return facts


def tensor_group(
    node: ModelNode, graph: ModelGraph | None, units: Units, name: str = COMPILED
) -> FactGroup:
    """Return the inputs and outputs of a node; producers are links into the graph of a name."""
    if graph is None:
        return FactGroup("Tensors")
    requested = set(node.node.inputs)
    result = {
        value.name: (value, other)
        for other in graph.nodes
        for value in other.values
        if value.name in requested
    }
    folded = {weight.name for weight in node.weights}
    names = [value for value in dict.fromkeys(node.node.inputs) if value in result]
    names = [value for value in names if result[value][0].constant not in folded]
    facts = [
        _tensor(f"in {place}", result[value][0], units, result[value][1], name)
        for place, value in enumerate(names)
    ]
    facts += [_tensor(f"out {place}", value, units) for place, value in enumerate(node.values)]
    return shortened("Tensors", facts)


def _tensor(
    label: str,
    value: GraphValue,
    units: Units,
    maker: ModelNode | None = None,
    graph: str = COMPILED,
) -> Fact:
    tensor = value.tensor
    nbytes = tensor.nbytes if tensor is not None else None
    text, hover = value_text(value), value.name
    if nbytes is not None:
        text += f"  {_unbroken(format_bytes(nbytes, units.size))}"
        hover += f", {nbytes:,} B"
    order = tuple(getattr(tensor, "dim_order", ()) or ())
    if order and order != tuple(range(len(order))):
        hover += f", dim order {list(order)}"
    if maker is None:
        return Fact(label, text, hover)
    link = node_selection(maker, "", graph)
    return Fact(label, text, f"{hover}, produced by {maker.name}", link=link)


def _unbroken(text: str) -> str:
    return text.replace(" ", "\u00a0")  # a number and its unit stay on one line


def weight_group(node: ModelNode, units: Units) -> FactGroup:
    """Return the constants folded into a node."""
    facts: list[Fact] = []
    for weight in node.weights:
        size = "size missing" if weight.nbytes is None else format_bytes(weight.nbytes, units.size)
        exact = "" if weight.nbytes is None else f", {weight.nbytes:,} B"
        hover = f"{weight.name}: {weight.description}{exact}"
        facts.append(
            Fact(
                weight.name.rsplit(".", 1)[-1],
                f"{short_description(weight.description)}  {_unbroken(size)}",
                hover,
            )
        )
    return shortened("Weights", facts)


def memory_group(session: Session, method: str, related: Related, units: Units) -> FactGroup:
    """Return where the output values of the selection lie in the planned buffers."""
    program = session.program
    if program is None or method not in session.methods:
        return FactGroup("Memory")
    requested = set(related.values)
    facts = [
        _place(arena.mem_id, value, units)
        for arena in analyse_memory(program, method).arenas
        for value in arena.values
        if value.value in requested
    ]
    return shortened("Memory", facts)


def _place(mem_id: int, value: PlannedValue, units: Units) -> Fact:
    text = f"buffer {mem_id} @ {value.offset:#x}, {value.first}…{value.last}"
    hover = (
        f"{value.nbytes:,} B ({format_bytes(value.nbytes, units.size)}) at byte"
        f" {value.offset:,}; live from instruction {value.first} to {value.last}"
    )
    return Fact(value.name, text, hover, link=Selection(SelectionKind.VALUE, value=value.value))


def argument_group(node: ModelNode) -> FactGroup:
    """Return the non-tensor arguments and other metadata of the node."""
    facts = [
        Fact(arg.name or f"argument {place}", str(arg.literal), repr(arg.literal))
        for place, arg in enumerate(node.node.args)
        if not arg.values and arg.literal is not None
    ]
    facts += [
        Fact(name.replace("_", " "), _short(str(value)), _short(str(value), 500))
        for name, value in node.node.attributes.items()
        if name not in _HIDDEN and value not in (None, "", ())
    ]
    return shortened("Arguments", facts)


def schema_group(node: GraphNode) -> FactGroup:
    """Return the schema of an operator, as torch declares it."""
    text = operator_schema(node.target)
    if text is None:
        return FactGroup("Schema")
    facts = [Fact(name, words, text) for name, words in schema_parts(text)]
    return shortened("Schema", facts)


def schema_parts(schema: str) -> list[tuple[str, str]]:
    """Return name and type, with its default, of each argument of a schema, then the result."""
    inside, _, result = schema.partition("(")[2].rpartition(") -> ")
    found: list[tuple[str, str]] = []
    for part in _ARGUMENT.findall(inside):
        words, _, name = part.strip().rpartition(" ")
        name, equals, default = name.partition("=")
        if words:  # "*" alone begins those that are given by name
            found.append((name, f"{words} = {default}" if equals else words))
    return [*found, ("returns", result or "()")]


def dtype_group(node: GraphNode) -> FactGroup:
    """Return the dtypes that the verifier allows for the tensors of an operator."""
    found = operator_dtypes(node.target)
    if found is None:
        schema = operator_schema(node.target) if "::" not in node.target else None
        if schema is None or "!" in schema:  # of a program, where kernels decide
            return FactGroup("Allowed dtypes")
        return FactGroup("Allowed dtypes", (Fact("all tensors", "any", f"any: {_NO_RULE}"),))
    facts = (
        Fact(
            name.replace("__ret_0", "result").replace("__ret_", "result "),
            _short(", ".join(dtypes), 48),
            f"{', '.join(dtypes)}; {plural(len(found.rows), 'combination')} of dtypes in all",
        )
        for name, dtypes in found.allowed().items()
    )
    listed = sorted(facts, key=lambda fact: "result" in fact.label)
    return shortened("Allowed dtypes", [*listed, *_combinations(found)])


def _combinations(found: OperatorDtypes) -> list[Fact]:
    """Return which dtypes go together, if there are few: in a row one alias is one dtype."""
    if not 1 < len(found.rows) <= _MOST_ROWS:
        return []
    facts: list[Fact] = []
    for number, row in enumerate(found.rows):
        named = {name.replace("__ret_0", "result"): alias for name, alias in row.items()}
        words = ", ".join(f"{name} {alias}" for name, alias in named.items())
        used = dict.fromkeys(row.values())
        hover = "; ".join(f"{alias}: {', '.join(found.aliases[alias])}" for alias in used)
        facts.append(Fact(f"row {number + 1}", words, hover))
    return facts


def _short(text: str, most: int = 120) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def also_group(title: str, nodes: Iterable[ModelNode]) -> FactGroup:
    """Return other nodes related to the selection, as links."""
    return shortened(
        title,
        (
            Fact("node", node_title(node), node.name, link=node_selection(node, "", COMPILED))
            for node in nodes
        ),
    )
