"""A SPIR-V graph module as a graph: TOSA instructions, tensors, constants.

Source: SPIR-V specification (instruction layout), extensions SPV_ARM_tensors, SPV_ARM_graph and
the extended instruction set TOSA.001000.1, whose codes follow the operators of TOSA 1.0
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import cast

from schema.errors import FormatError
from schema.graph import Argument, Graph, GraphNode, GraphValue, NodeKind, TensorMeta
from schema.payloads.tosa.ops import OPERATORS, RELEASE_1, is_enum
from schema.payloads.vgf.operands import ACCUMULATORS, SHAPES, attributes_of

_MAGIC = 0x07230203  # SPIR-V specification, section 2.3
_MAX_INSTRUCTIONS = 500_000
_NAME, _IMPORT, _EXTENDED = 5, 11, 12  # opcodes of SPIR-V: OpName, OpExtInstImport, OpExtInst
_BOOL, _INT, _FLOAT, _CONSTANT, _COMPOSITE, _NULL = 20, 21, 22, 43, 44, 46
_REPLICATED = 4461  # OpConstantCompositeReplicateEXT
_TRUE, _FALSE = 41, 42
_TENSOR, _GRAPH_CONSTANT, _ENTRY, _INPUT, _OUTPUT = 4163, 4181, 4182, 4184, 4185
_ELEMENTS = {
    ("int", 8): ("int8", 1),
    ("int", 16): ("int16", 2),
    ("int", 32): ("int32", 3),
    ("int", 64): ("int64", 4),
    ("float", 16): ("float16", 5),
    ("float", 32): ("float32", 6),
    ("float", 64): ("float64", 7),
}
Words = tuple[int, ...]
_MOST_ELEMENTS = 1 << 22  # of the constants inside a module; large ones are beside it


def instructions(words: Sequence[int]) -> Iterator[tuple[int, Words]]:
    """Yield (opcode, operand words) of a module.

    Raises: FormatError if it is not SPIR-V or an instruction exceeds it
    """
    if len(words) < 5 or words[0] != _MAGIC:
        found = f"{words[0]:#x}" if words else "nothing"
        raise FormatError(f"the SPIR-V mark {_MAGIC:#x}", found, field="module")
    at, count = 5, 0
    while at < len(words):
        length = words[at] >> 16
        count += 1
        if not 0 < length <= len(words) - at or count > _MAX_INSTRUCTIONS:
            raise FormatError("an instruction inside the module", f"{length} words", field="module")
        yield words[at] & 0xFFFF, tuple(words[at + 1 : at + length])
        at += length


def literal_text(words: Words) -> str:
    """Return a string that begins with the first word and ends with a zero byte."""
    raw = struct.pack(f"<{len(words)}I", *words)
    return raw.split(b"\0", 1)[0].decode("utf-8", "backslashreplace")


@dataclass(slots=True)
class _Module:
    names: dict[int, str] = field(default_factory=dict[int, str])
    sets: dict[int, str] = field(default_factory=dict[int, str])
    elements: dict[int, tuple[str, int]] = field(default_factory=dict[int, tuple[str, int]])
    literals: dict[int, object] = field(default_factory=dict[int, object])
    elements_held: int = 0
    kinds: dict[int, int] = field(default_factory=dict[int, int])
    tensors: dict[int, TensorMeta] = field(default_factory=dict[int, TensorMeta])
    values: dict[str, GraphValue] = field(default_factory=dict[str, GraphValue])
    nodes: list[GraphNode] = field(default_factory=list[GraphNode])
    inputs: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    outputs: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    entry: str = ""


def read_graph(words: Sequence[int], constants: Sequence[tuple[str, int]]) -> Graph:
    """Return the graph of a module.

    Args:
        words: the module
        constants: name and bytes of the segment's constants, by graph constant id

    Raises: FormatError if it is not a readable module
    """
    module = _Module()
    for opcode, operands in instructions(words):
        if opcode in _READERS and len(operands) >= _READERS[opcode][0]:
            _READERS[opcode][1](module, operands, constants)
    return Graph(
        module.entry or "module",
        tuple(module.nodes),
        module.values,
        _in_order(module.inputs),
        _in_order(module.outputs),
        attributes=MappingProxyType({"instruction sets": ", ".join(module.sets.values())}),
    )


def _in_order(places: Sequence[tuple[int, str]]) -> tuple[str, ...]:
    """Return names by their index in the interface, which instructions need not follow."""
    return tuple(name for _, name in sorted(places, key=lambda one: one[0]))


_Constants = Sequence[tuple[str, int]]


def _name(module: _Module, operands: Words, _: _Constants) -> None:
    module.names[operands[0]] = literal_text(operands[1:])


def _import(module: _Module, operands: Words, _: _Constants) -> None:
    module.sets[operands[0]] = literal_text(operands[1:])


def _bool(module: _Module, operands: Words, _: _Constants) -> None:
    module.elements[operands[0]] = ("bool", 11)


def _int(module: _Module, operands: Words, _: _Constants) -> None:
    key = ("int", operands[1])
    module.elements[operands[0]] = _ELEMENTS.get(key, (f"int{operands[1]}", -1))


def _float(module: _Module, operands: Words, _: _Constants) -> None:
    key = ("float", operands[1])
    module.elements[operands[0]] = _ELEMENTS.get(key, (f"float{operands[1]}", -1))


def _constant(module: _Module, operands: Words, _: _Constants) -> None:
    kind, ident, words = operands[0], operands[1], operands[2:]
    name = module.elements.get(kind, ("", -1))[0]
    if name == "float32":
        module.literals[ident] = struct.unpack("<f", struct.pack("<I", words[0]))[0]
    elif name == "float16":
        module.literals[ident] = struct.unpack("<e", struct.pack("<H", words[0] & 0xFFFF))[0]
    else:
        value = sum(word << 32 * index for index, word in enumerate(words))
        module.literals[ident] = _signed(value, name, 32 * len(words))


def _signed(value: int, name: str, stored: int) -> int:
    """Return an integer of the width of its type: TOSA's are signed, narrow ones may not be."""
    width = name.removeprefix("int")
    bits = int(width) if name.startswith("int") and width.isdigit() and width != "0" else stored
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def _true(module: _Module, operands: Words, _: _Constants) -> None:
    module.literals[operands[1]] = True


def _false(module: _Module, operands: Words, _: _Constants) -> None:
    module.literals[operands[1]] = False


def _composite(module: _Module, operands: Words, _: _Constants) -> None:
    found: list[object] = []
    for part in operands[2:]:
        item = module.literals.get(part, f"%{part}")
        own = cast("tuple[object, ...]", item) if isinstance(item, tuple) else (item,)
        _hold(module, len(own))
        found += own
    module.kinds[operands[1]] = operands[0]
    module.literals[operands[1]] = tuple(found)


def _replicated(module: _Module, operands: Words, _: _Constants) -> None:
    item = module.literals.get(operands[2], f"%{operands[2]}")
    _fill(module, operands[0], operands[1], item)


def _null(module: _Module, operands: Words, _: _Constants) -> None:
    _fill(module, operands[0], operands[1], 0)


def _fill(module: _Module, kind: int, ident: int, item: object) -> None:
    """Set a constant whose elements are all equal, as many as its type has."""
    meta = module.tensors.get(kind)
    module.kinds[ident] = kind
    if meta is None:
        module.literals[ident] = item
        return
    count = math.prod(size for size in meta.sizes if isinstance(size, int))
    _hold(module, count)
    own = cast("tuple[object, ...]", item) if isinstance(item, tuple) else (item,)
    module.literals[ident] = own * (count // max(len(own), 1))


def _hold(module: _Module, count: int) -> None:
    """Count the elements of all constants of a module.

    Raises: FormatError for more than a module of this format has
    """
    module.elements_held += max(count, 0)
    if count < 0 or module.elements_held > _MOST_ELEMENTS:
        raise FormatError(f"at most {_MOST_ELEMENTS} elements", str(count), field="constants")


def _tensor(module: _Module, operands: Words, _: _Constants) -> None:
    result, element, *rest = operands
    name, scalar_type = module.elements.get(element, ("unknown", -1))
    shape = module.literals.get(rest[1]) if len(rest) > 1 else None
    sizes = cast("tuple[object, ...]", shape) if isinstance(shape, tuple) else ()
    dims = tuple(size if isinstance(size, int) else "?" for size in sizes)
    module.tensors[result] = TensorMeta(scalar_type, dims, type_name=name)


def _value(module: _Module, kind: int, ident: int, constant: tuple[str, int] | None) -> str:
    label = f"v{ident}"
    meta = module.tensors.get(kind)
    name, nbytes = constant or ("", None)
    module.values[label] = GraphValue(label, meta, constant=name, constant_bytes=nbytes)
    return label


def _graph_constant(module: _Module, operands: Words, constants: _Constants) -> None:
    index = operands[2]
    known = constants[index] if index < len(constants) else None
    _value(module, operands[0], operands[1], known)


def _entry(module: _Module, operands: Words, _: _Constants) -> None:
    module.entry = literal_text(operands[1:])


def _input(module: _Module, operands: Words, _: _Constants) -> None:
    name = _value(module, operands[0], operands[1], None)
    module.inputs.append((_place(module, operands[2:3], len(module.inputs)), name))


def _output(module: _Module, operands: Words, _: _Constants) -> None:
    label = f"v{operands[0]}"
    if label not in module.values:  # a constant, or one that this reader does not know
        (label,) = _argument(module, operands[0], as_list=False).values or (label,)
    module.values.setdefault(label, GraphValue(label, kind="other"))
    module.outputs.append((_place(module, operands[1:2], len(module.outputs)), label))


def _place(module: _Module, operand: Words, otherwise: int) -> int:
    """Return an index of the interface, given by a constant."""
    found = module.literals.get(operand[0]) if operand else None
    return found if isinstance(found, int) else otherwise


def _extended(module: _Module, operands: Words, _: _Constants) -> None:
    kind, ident, instruction_set, number, *rest = operands
    label = _value(module, kind, ident, None)
    tosa = module.sets.get(instruction_set, "").startswith("TOSA.")
    target = OPERATORS[number] if tosa and number < len(OPERATORS) else f"instruction {number}"
    names = attributes_of(target)
    facts = {name: _fact(module, name, operand) for name, operand in zip(names, rest, strict=False)}
    lists = SHAPES.get(target, ())
    arguments = tuple(
        _argument(module, operand, as_list=place in lists)
        for place, operand in enumerate(rest[len(names) :])
    )
    node = f"{target}_{len(module.nodes)}"
    module.nodes.append(
        GraphNode(
            node, NodeKind.CALL, target, arguments, (label,), attributes=MappingProxyType(facts)
        )
    )


def _fact(module: _Module, name: str, operand: int) -> object:
    """Return an attribute; enumerations by name, as in a TOSA flatbuffer."""
    found = module.literals.get(operand, f"%{operand}")
    if name == "acc_type" and isinstance(found, int) and 0 <= found < len(ACCUMULATORS):
        return ACCUMULATORS[found]
    if is_enum(name) and isinstance(found, int):
        return RELEASE_1.attribute_text(name, found)
    return found


def _argument(module: _Module, operand: int, *, as_list: bool) -> Argument:
    label = f"v{operand}"
    if label in module.values and not as_list:
        return Argument(values=(label,))
    literal: object = module.literals.get(operand)
    if literal is None:
        return Argument(literal=f"%{operand}")
    meta = module.tensors.get(module.kinds.get(operand, -1))
    if as_list or meta is None:
        label = f"{label}_literal"
        kind = "list" if literal.__class__ is tuple else "int"
        module.values.setdefault(label, GraphValue(label, kind=kind, literal=literal))
    else:
        module.values[label] = GraphValue(label, meta, literal=literal)
    return Argument(values=(label,))


# opcode -> fewest operands, reader
_READERS = {
    _NAME: (2, _name),
    _IMPORT: (2, _import),
    _BOOL: (1, _bool),
    _INT: (3, _int),
    _FLOAT: (2, _float),
    _CONSTANT: (3, _constant),
    _TRUE: (2, _true),
    _FALSE: (2, _false),
    _COMPOSITE: (3, _composite),
    _REPLICATED: (3, _replicated),
    _NULL: (2, _null),
    _TENSOR: (2, _tensor),
    _GRAPH_CONSTANT: (3, _graph_constant),
    _ENTRY: (2, _entry),
    _INPUT: (2, _input),
    _OUTPUT: (2, _output),
    _EXTENDED: (4, _extended),
}
