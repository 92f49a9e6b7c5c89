"""Payloads of the demonstration backends: a line of text, or a complete program.

Source: exir/backend/test/{backend_with_compiler_demo,backend_with_delegate_mapping_demo,
backend_with_preprocess_all_demo}.py, exir/backend/test/demos/rpc
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from schema.errors import FormatError
from schema.graph import Graph, GraphNode, NodeKind
from schema.payloads.model import Part, Payload, PayloadSource
from schema.payloads.parts import cover
from schema.program import decode, sniff

_MAX_TEXT = 16 << 20
_MAX_OPERATIONS = 100_000
_HEAD = re.compile(r"(\d+)version:([^#]*)#|(\d+)#")
_OPERATION = re.compile(r"op:(?:demo::)?([^,]+), numel:([^,]+), dtype:(.+)")
_HANDLE = "<debug_handle>"


def decode_text(source: PayloadSource) -> Payload:
    """Decode the instruction text of BackendWithCompilerDemo and similar backends.

    ``1version:0#op:demo::aten.sin.default, numel:1, dtype:torch.float32<debug_handle>1#``

    Raises: FormatError if the string does not begin with a count
    """
    text = _text(source.data)
    head = _HEAD.match(text)
    if head is None:
        raise FormatError("a text that begins with a count", repr(text[:20]), offset=0)
    claimed = head[1] or head[3]
    nodes: list[GraphNode] = []
    claims = [Part("count and version", "header", 0, len(head[0].encode()))]
    at = claims[0].nbytes
    for piece in text[head.end() :].split("#"):
        size = len(piece.encode()) + 1
        if piece:
            if len(nodes) >= _MAX_OPERATIONS:
                raise FormatError(f"at most {_MAX_OPERATIONS} operations", "more", offset=at)
            nodes.append(_node(piece, len(nodes)))
            claims.append(Part(nodes[-1].name, "node", at, size))
        at += size
    handles = {node.name: (node.debug_handle,) for node in nodes if node.debug_handle is not None}
    facts = {"operations": len(nodes), "operations announced": claimed, "version": head[2] or ""}
    return Payload(
        source.backend_id,
        "demo text",
        len(source.data),
        Graph("demo", tuple(nodes), {}, attributes=MappingProxyType({"edges": "unknown"})),
        cover(source.data, claims),
        debug_handles=MappingProxyType(handles),
        summary=MappingProxyType(facts),
    )


def _text(data: memoryview) -> str:
    if len(data) > _MAX_TEXT:
        raise FormatError(f"a text below {_MAX_TEXT} bytes", f"{len(data)} bytes")
    try:
        return bytes(data).decode("utf-8")
    except UnicodeDecodeError as error:
        raise FormatError("UTF-8", "other bytes", offset=error.start) from None


def _node(piece: str, index: int) -> GraphNode:
    body, _, handle = piece.partition(_HANDLE)
    found = _OPERATION.fullmatch(body)
    facts: Mapping[str, object] = {}
    target = body
    if found is not None:
        target, facts = found[1], {"numel": found[2], "dtype": found[3]}
    number = int(handle) if handle.isdecimal() and len(handle) < 19 else None
    return GraphNode(
        f"{target}_{index}",
        NodeKind.CALL,
        target,
        debug_handle=number,
        attributes=MappingProxyType(dict(facts)),
    )


def decode_plain_text(source: PayloadSource) -> Payload:
    """Decode a payload that is only a string, such as ``imqnncompiled`` or a printed graph.

    Raises: FormatError if it is not a string
    """
    text = _text(source.data)
    claims = [Part("text", "text", 0, len(source.data))]
    facts = {"text": text if len(text) <= 400 else f"{text[:400]}…"}
    return Payload(
        source.backend_id,
        "plain text",
        len(source.data),
        parts=cover(source.data, claims),
        summary=MappingProxyType(facts),
    )


def decode_program(source: PayloadSource) -> Payload:
    """Decode a payload that is a complete program (ExecutorBackend).

    Its plans are read by the program reader; the payload only provides the file.

    Raises: FormatError if it is not a program
    """
    if not sniff(bytes(source.data[:16])):
        raise FormatError("a program ET12", repr(bytes(source.data[4:8]))[1:], offset=4)
    program = decode(source.data)
    methods = ", ".join(plan.name for plan in program.plans)
    calls = sum(len(chain.instructions) for plan in program.plans for chain in plan.chains)
    return Payload(
        source.backend_id,
        "ET12",
        len(source.data),
        parts=cover(source.data, [Part("program", "file", 0, len(source.data))]),
        summary=MappingProxyType({"methods": methods, "instructions": calls}),
        files=MappingProxyType({"program.pte": source.data}),
        issues=program.issues,
    )
