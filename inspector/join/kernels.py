"""Compares events inside delegates with the payload: number and dtypes of matmuls.

Names of kernels contain their dtypes: ``Convolution (NHWC, F32) IGEMM #1``. `schema.backends` lists
the backends whose event names are known.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from inspector.files.payloads import delegate_payload
from inspector.join.facts import Finding
from inspector.join.node_index import base_operator
from inspector.trace.blocks import Block
from schema.backends import BACKENDS, backend_of
from schema.etdump import EMULATED
from schema.graph import Graph, GraphNode
from schema.payloads import Payload
from schema.payloads.identity import named_node
from schema.program import ProgramFile, instructions
from schema.program import model as m

_PRODUCTS = frozenset(("convolution", "conv1d", "conv2d", "linear", "mm"))
_QUANTIZED = re.compile(r"\bQ[A-Z0-9]+\b")


def kernels_against(program: ProgramFile, plan: m.ExecutionPlan, block: Block) -> Finding:
    """Return the number of delegate calls that match their payload, and the first mismatch."""
    agree = 0
    steps = instructions(plan)
    for number, names in inner_events(block).items():
        args = steps[number][2].instr_args if number < len(steps) else None
        if not isinstance(args, m.DelegateCall):
            continue
        if not 0 <= args.delegate_index < len(plan.delegates):
            continue
        against = foreign_kernels(plan.delegates[args.delegate_index].id, names)
        if not against:
            payload = delegate_payload(program, plan, args.delegate_index)
            against = _against(payload, names)
        if against:
            return 0, f"instruction {number}: {against}"
        agree += against is not None
    return agree, ""


@lru_cache(maxsize=64)
def _matmul_events(backend_id: str) -> re.Pattern[str] | None:
    checks = backend_of(backend_id).checks
    return None if checks is None else re.compile(checks.matmul_events)


def _matmul_event(name: str) -> tuple[str, re.Match[str]] | None:
    """Return the backend with matmul events of this name, and the match; None for other events."""
    for backend in BACKENDS.values():
        pattern = _matmul_events(backend.id) if backend.checks is not None else None
        match = None if pattern is None else pattern.match(name)
        if match is not None:
            return backend.id, match
    return None


def foreign_kernels(backend: str, names: list[str]) -> str:
    """Return why kernels cannot have run in a delegate of this backend, empty when they can."""
    found = ((name, _matmul_event(name)) for name in names)
    name, event = next(((name, one) for name, one in found if one is not None), ("", None))
    if event is not None and event[0] != backend:
        return f"the trace has {name!r} in a delegate of {backend}"
    return ""


def is_quantized_kernel(name: str) -> bool:
    """Return whether an event is a quantized convolution or matmul."""
    event = _matmul_event(name)
    return event is not None and _QUANTIZED.search(event[1]["types"]) is not None


def is_product(name: str) -> bool:
    """Return whether an event is a convolution or matmul."""
    return _matmul_event(name) is not None


def quantized_matmul(nodes: Sequence[GraphNode]) -> str:
    """Return the operator of the first matmul here whose left operand is dequantized."""
    built = {name: node for node in nodes for name in node.outputs}
    for node in nodes:
        if base_operator(node.target).split("::")[-1] not in _PRODUCTS:
            continue
        makers = [built.get(name) for name in node.inputs]
        if len(makers) > 1 and all(_dequantizes(maker) for maker in makers[:2]):
            return base_operator(node.target)
    return ""


def _dequantizes(node: GraphNode | None) -> bool:
    return node is not None and "dequantize" in node.target


def logs_every_node(program: ProgramFile, plan: m.ExecutionPlan, block: Block) -> bool:
    """Return whether delegates that log by node logged each node of their payload, and no other."""
    steps = instructions(plan)
    logged = _logged_nodes(block)
    for number, nodes in logged.items():
        args = steps[number][2].instr_args if number < len(steps) else None
        if not isinstance(args, m.DelegateCall):
            return False
        if not 0 <= args.delegate_index < len(plan.delegates):
            return False
        payload = delegate_payload(program, plan, args.delegate_index)
        if not backend_of(payload.backend_id).has_engines or payload.graph is None:
            continue
        if nodes != set(range(len(payload.graph.calls()))):
            return False
    return bool(logged)


def _logged_nodes(block: Block) -> dict[int, set[int]]:
    found: dict[int, set[int]] = {}
    for event in range(len(block)):
        identifier, number = block.delegate_id(event), block.instruction(event)
        node = None if identifier is None else named_node(identifier)
        if node is not None and number is not None and number >= 0:
            found.setdefault(number, set()).add(node)
    return found


def inner_events(block: Block) -> dict[int, list[str]]:
    """Return the names of kernels a delegate logged, by the instruction that called it.

    A delegate that torch emulates logs nodes of the recorded graph instead.
    """
    found: dict[int, list[str]] = {}
    for event in range(len(block)):
        identifier, number = block.delegate_id(event), block.instruction(event)
        if not isinstance(identifier, str) or named_node(identifier) is not None:
            continue
        if block.metadata(event, 0) == EMULATED:
            continue
        if number is not None and number >= 0:
            found.setdefault(number, []).append(identifier)
    return found


def _against(payload: Payload, names: list[str]) -> str | None:
    """Return a contradiction, an empty string for agreement, None if nothing is comparable."""
    checks, pattern = backend_of(payload.backend_id).checks, _matmul_events(payload.backend_id)
    if checks is None or pattern is None or payload.graph is None:
        return None
    events = [match for match in map(pattern.match, names) if match is not None]
    nodes = [node for node in payload.graph.calls() if node.target in checks.matmul_nodes]
    if len(events) != len(nodes):
        return (
            f"the trace has {len(events)} convolutions and matrix products in the delegate,"
            f" its payload {len(nodes)}"
        )
    quantized = sum(_QUANTIZED.search(match["types"]) is not None for match in events)
    stored = sum(_is_quantized(payload.graph, node) for node in nodes)
    if quantized != stored:
        return (
            f"{quantized} convolutions and matrix products of the trace are quantized,"
            f" {stored} of the payload"
        )
    return "" if nodes else None


def _is_quantized(graph: Graph, node: GraphNode) -> bool:
    """Return whether a node reads a quantized input or quantized weights."""
    tensors = [graph.values[name].tensor for name in node.inputs if name in graph.values]
    return any(tensor is not None and tensor.quantization is not None for tensor in tensors)
