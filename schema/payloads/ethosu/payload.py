"""Decodes the block stream of an Ethos-U payload.

Each block: 16-byte name, 32-bit size, external flag, reserved bytes, then its data padded to 16.
Source: backends/arm/arm_vela.py, runtime/VelaBinStream.h
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from schema.errors import FormatError, Issue, Severity
from schema.graph import Graph, GraphNode, GraphValue, NodeKind, TensorMeta
from schema.payloads.ethosu.commands import CommandStream, read_commands
from schema.payloads.model import INLINE, Constant, NamedData, Part, Payload, PayloadSource
from schema.payloads.named import missing_constants, named_constant
from schema.payloads.parts import cover
from schema.payloads.reading import span, unpack

FIRST, LAST = "vela_bin_stream", "vela_end_stream"
_HEADER = struct.Struct("<16sIB11s")
_KEY_BYTES = 64  # hexadecimal digits
_MAX_BLOCKS = 1000
_SHOWN = 16
_ENTRY_WORDS = (9, 7)  # six dimensions; four before release 1.0
_BY_BYTES = {1: 1, 2: 2, 4: 3}
_NAMES = frozenset({FIRST, "cmd_data", "weight_data", "scratch_size", "scratch_data", LAST})
_WHERE = "Ethos-U payload"


@dataclass(frozen=True, slots=True)
class PayloadBlock:
    """A block of the stream; ``key`` names the blob of an external one."""

    name: str
    offset: int
    data: memoryview
    key: str = ""


@dataclass(frozen=True, slots=True)
class RegionTensor:
    """An input or output: padded shape, bytes an element, offset in its region."""

    shape: tuple[int, ...]
    element_bytes: int
    offset: int
    region: int


def decode_payload(source: PayloadSource) -> Payload:
    """Decode a Vela block stream.

    Raises: FormatError if the bytes are not one
    """
    issues: list[Issue] = []
    blocks = read_blocks(source.data, issues)
    contents = {block.name: _content(block, source.named_data) for block in blocks}
    inputs = _tensors(contents.get("inputs"), "inputs")
    outputs = _tensors(contents.get("outputs"), "outputs")
    commands = _commands(contents.get("cmd_data"), issues)
    constants = _constants(blocks, source.named_data)
    issues += missing_constants(constants, _WHERE)
    graph = _graph(inputs, outputs, commands)
    return Payload(
        source.backend_id,
        f"vela_bin_stream/{commands.version}" if commands else "vela_bin_stream",
        len(source.data),
        graph,
        cover(source.data, _claims(blocks)),
        constants,
        summary=_summary(blocks, contents, inputs, outputs, commands),
        external_ids=MappingProxyType(dict(enumerate((*graph.inputs, *graph.outputs)))),
        issues=tuple(issues),
    )


def read_blocks(data: memoryview, issues: list[Issue]) -> list[PayloadBlock]:
    """Return the blocks of a stream.

    Raises: FormatError if the first block is not the stream's or one does not fit
    """
    blocks: list[PayloadBlock] = []
    at = 0
    while at < len(data):
        raw, size, external, _ = unpack(_HEADER, data, at, f"block {len(blocks)}")
        name = raw.split(b"\0", 1)[0].decode("ascii", "backslashreplace")
        if not blocks and name != FIRST:
            raise FormatError(f"a first block {FIRST}", repr(name), offset=0)
        if len(blocks) >= _MAX_BLOCKS:
            raise FormatError(f"at most {_MAX_BLOCKS} blocks", "more", offset=at)
        body = span(data, at + _HEADER.size, size, name)
        key = bytes(body).decode("ascii", "backslashreplace") if external else ""
        if external and size != _KEY_BYTES:
            raise FormatError(f"a key of {_KEY_BYTES} digits", f"{size} bytes", field=name)
        blocks.append(PayloadBlock(name, at, body, key))
        at += _HEADER.size + -(-size // 16) * 16
        if name == LAST:
            break
    _check_end(blocks, at, len(data), issues)
    return blocks


def _check_end(blocks: list[PayloadBlock], end: int, size: int, issues: list[Issue]) -> None:
    if not blocks or blocks[-1].name != LAST:
        issues.append(Issue(Severity.WARNING, _WHERE, f"the stream has no block {LAST}"))
    elif end != size:
        text = f"{size - end} bytes follow the block {LAST}"
        issues.append(Issue(Severity.WARNING, _WHERE, text))
    counts = Counter(block.name for block in blocks)
    issues += [
        Issue(Severity.WARNING, _WHERE, f"the block {name!r} is there {count} times")
        for name, count in sorted(counts.items())
        if count > 1
    ]
    unknown = counts.keys() - _NAMES - {"inputs", "outputs"}
    issues += [
        Issue(Severity.WARNING, _WHERE, f"the block {name!r} is not known")
        for name in sorted(unknown)
    ]


def _content(block: PayloadBlock, named_data: NamedData) -> memoryview | None:
    return named_data.get(block.key) if block.key else block.data


def _tensors(data: memoryview | None, what: str) -> tuple[RegionTensor, ...]:
    if data is None:
        return ()
    (count,) = unpack(struct.Struct("<i"), data, 0, what)
    words, rest = divmod(len(data) - 4, 4)
    if count == 0:
        return ()
    if count < 0 or rest or words % count or words // count not in _ENTRY_WORDS:
        raise FormatError("entries of 7 or 9 integers", f"{count} in {words} words", field=what)
    width = words // count
    numbers = struct.unpack_from(f"<{words}i", data, 4)
    entries = [numbers[start : start + width] for start in range(0, words, width)]
    return tuple(RegionTensor(entry[:-3], *entry[-3:]) for entry in entries)


def _commands(data: memoryview | None, issues: list[Issue]) -> CommandStream | None:
    if data is None:
        return None
    try:
        return read_commands(data)
    except FormatError as error:
        issues.append(Issue(Severity.ERROR, _WHERE, str(error)))
        return None


def _constants(blocks: list[PayloadBlock], named_data: NamedData) -> tuple[Constant, ...]:
    found: list[Constant] = []
    for block in blocks:
        if block.key:
            found.append(named_constant(block.key, named_data, role=block.name))
        elif block.name == "weight_data":
            found.append(Constant(block.name, len(block.data), INLINE, block.data))
    return tuple(found)


def _claims(blocks: list[PayloadBlock]) -> list[Part]:
    claims: list[Part] = []
    for block in blocks:
        body = block.offset + _HEADER.size
        kind = "named_reference" if block.key else "block"
        kind = "constant" if block.name == "weight_data" and not block.key else kind
        claims.append(Part(f"{block.name} header", "header", block.offset, _HEADER.size))
        claims.append(Part(block.name, kind, body, len(block.data)))
    return claims


def _graph(
    inputs: tuple[RegionTensor, ...],
    outputs: tuple[RegionTensor, ...],
    commands: CommandStream | None,
) -> Graph:
    """Return the NPU's operations in order; the stream has no names and thus no edges."""
    values = {
        f"{what}_{index}": GraphValue(f"{what}_{index}", _meta(tensor))
        for what, tensors in (("input", inputs), ("output", outputs))
        for index, tensor in enumerate(tensors)
    }
    nodes = tuple(
        GraphNode(
            f"{operation.kind}_{index}",
            NodeKind.CALL,
            operation.kind,
            attributes=MappingProxyType(dict(operation.facts)),
        )
        for index, operation in enumerate(commands.operations if commands else ())
    )
    names = tuple(values)
    facts = MappingProxyType({"edges": "unknown"})
    return Graph(
        "Ethos-U", nodes, values, names[: len(inputs)], names[len(inputs) :], attributes=facts
    )


def _meta(tensor: RegionTensor) -> TensorMeta:
    scalar_type = _BY_BYTES.get(tensor.element_bytes, -1)
    return TensorMeta(scalar_type, tensor.shape, type_name=f"{8 * tensor.element_bytes}-bit")


def _summary(
    blocks: list[PayloadBlock],
    contents: Mapping[str, memoryview | None],
    inputs: tuple[RegionTensor, ...],
    outputs: tuple[RegionTensor, ...],
    commands: CommandStream | None,
) -> Mapping[str, object]:
    facts: dict[str, object] = {
        "blocks": ", ".join(block.name for block in blocks),
        "external blocks": ", ".join(block.name for block in blocks if block.key) or "none",
        "inputs": len(inputs),
        "outputs": len(outputs),
    }
    scratch = contents.get("scratch_size")
    if scratch is not None and len(scratch) >= 4:
        facts["scratch bytes"] = int.from_bytes(bytes(scratch[:4]), "little")
    elif contents.get("scratch_data") is not None:
        facts["scratch bytes"] = len(contents["scratch_data"] or b"")
    weights = contents.get("weight_data")
    if weights is not None:
        facts["weight bytes"] = len(weights)
    if commands is not None:
        facts["command words"] = commands.words
        facts["synchronisations"] = commands.synchronisations
        for kind, count in Counter(item.kind for item in commands.operations).items():
            facts[f"{kind} operations"] = count
    for what, tensors in (("input", inputs), ("output", outputs)):
        for index, tensor in enumerate(tensors[:_SHOWN]):
            facts[f"{what} {index}"] = f"region {tensor.region}, offset {tensor.offset}"
    return MappingProxyType(facts)


def command_stream(data: memoryview) -> CommandStream | None:
    """Return the commands inside a payload, None where they are elsewhere or damaged."""
    try:
        blocks = read_blocks(data, [])
        inline = next((one.data for one in blocks if one.name == "cmd_data" and not one.key), None)
        return None if inline is None else read_commands(inline)
    except FormatError:
        return None
