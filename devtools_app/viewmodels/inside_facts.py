"""Payload nodes of a delegate and statistics of weights, for the Node panel."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from inspector.files.session import Session
from inspector.graph.delegate_inside import (
    InsideNode,
    inside_delegate,
    inside_of,
    quantization_text,
)
from inspector.graph.model_graph import ModelNode
from inspector.graph.node_text import value_text
from inspector.size.weights import Spread, WeightBytes, node_weights, spread
from inspector.tables.facts import Fact, FactGroup
from inspector.tables.selection import Units
from inspector.units import format_bytes, format_share, plain_text
from schema.backends import backend_of
from schema.program import instructions
from schema.program import model as m

_BARS = "▁▂▃▄▅▆▇█"
_MOST_BYTES = 256 << 20  # of a weight whose numbers are looked at; more takes a second


def inside_groups(session: Session, method: str, node: ModelNode) -> list[FactGroup]:
    """Return a group for each payload node that represents a node of the graph."""
    return [_inside_group(session, method, one) for one in inside_of(session, method, node)]


def _inside_group(session: Session, method: str, one: InsideNode) -> FactGroup:
    facts = [Fact("kind", one.node.target, one.node.name)]
    if one.activation:
        facts.append(Fact("fused activation", one.activation))
    if one.inserted:
        facts.append(Fact("inserted", "created by the compiler: no source operator"))
    for value in one.values:
        if value.constant is None:
            facts.append(Fact(value.role, value_text(value.value), f"{value.value.name} in memory"))
        tensor = value.value.tensor
        if tensor is not None and tensor.quantization is not None:
            text = quantization_text(tensor.quantization)
            facts.append(Fact(f"{value.role}, quantized", text, text))
    command = step_command(session, method, one)
    if command:
        facts.append(Fact("step to it", command, f"{command}: stops after it, on either engine"))
    return FactGroup("In the payload", tuple(facts))


def step_command(session: Session, method: str, one: InsideNode) -> str:
    """Return the command that runs to a node of a delegate, empty where it does not step."""
    program = session.program
    path = next((file.path for file in session.files if file.kind in ("pte", "bpte")), "")
    if program is None or not path or method not in session.methods:
        return ""
    plan = program.plan(method)
    if not backend_of(plan.delegates[one.delegate].id).steps:
        return ""
    calls = [
        step.instr_args.delegate_index
        for _, _, step in instructions(plan)
        if isinstance(step.instr_args, m.DelegateCall)
    ]
    place = next(
        number
        for number, each in enumerate(inside_delegate(session, method, one.delegate).nodes)
        if each.node.name == one.node.name
    )
    text = ["etscope", "step", shlex.quote(path)]
    text += [] if method == "forward" else ["--method", shlex.quote(method)]
    call = calls.index(one.delegate) if one.delegate in calls else 0
    return " ".join([*text, "--call", str(call), "--to", str(place + 1)])


def weight_groups(session: Session, method: str, node: ModelNode, units: Units) -> list[FactGroup]:
    """Return a group for each weight of a node with its bytes and value distribution."""
    return [_weight_group(one, units) for one in node_weights(session, method, node)]


def _weight_group(weight: WeightBytes, units: Units) -> FactGroup:
    size = "unknown" if weight.nbytes is None else format_bytes(weight.nbytes, units.size)
    exact = "" if weight.nbytes is None else f"{weight.nbytes:,} B"
    sizes = ", ".join(map(str, weight.sizes))
    facts = [Fact("size", f"{weight.dtype} [{sizes}]  {size}", f"{weight.name} {exact}".strip())]
    if weight.quantization is not None:
        text = quantization_text(weight.quantization)
        facts.append(Fact("quantized", text, text))
    facts += _numbers(weight)
    title = f"Weight: {weight.role}" if weight.role else "Weight"
    return FactGroup(title, tuple(facts))


def _numbers(weight: WeightBytes) -> list[Fact]:
    if weight.data is None:
        return [Fact("values", "missing", weight.missing)]
    if len(weight.data) > _MOST_BYTES:
        return [Fact("values", "not read", f"more than {format_bytes(_MOST_BYTES)}")]
    found = spread(weight)
    if found is None:
        return [Fact("values", "packed: values not readable")]
    return _spread_facts(found)


def _spread_facts(found: Spread) -> list[Fact]:
    facts = found.facts
    low, high = facts["min"] or 0, facts["max"] or 0
    text = f"{plain_text(low)} … {plain_text(high)}"
    mean, deviation = facts["mean"] or 0.0, facts["std"] or 0.0
    listed = [
        Fact("values", text, f"{low!r} … {high!r}"),
        Fact(
            "mean ± std",
            f"{plain_text(mean)} ± {plain_text(deviation)}",
            f"{mean!r} ± {deviation!r}",
        ),
        Fact("spread", bars(found.counts.tolist()), _bins(found)),
    ]
    for name, word in (("zero", "zeros"), ("nan", "NaN"), ("inf", "infinite")):
        count = facts[name]
        if count:
            share = count / max(facts["count"] or 1, 1)
            listed.append(Fact(word, f"{count:,}  {format_share(share)}"))
    return listed


def bars(counts: Sequence[int]) -> str:
    """Return a histogram as a line of bars; a bin with any value is never blank."""
    top = max(counts, default=0)
    if not top:
        return ""
    steps = len(_BARS) - 1
    return "".join(" " if not one else _BARS[round(one / top * steps)] for one in counts)


def _bins(found: Spread) -> str:
    largest = int(found.counts.max())
    return f"{len(found.counts)} bins of equal width, the largest holds {largest:,} elements"
