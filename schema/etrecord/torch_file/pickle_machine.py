"""Runs the opcodes of a pickle without importing or calling anything.

A global is only a name, and ``REDUCE`` calls a function of ours that
returns plain data. Work is bounded by the number of opcodes, memory by that and by the length
of the pickle; dictionary keys are limited to types whose hashes cannot be forced to collide.

Source: Lib/pickletools.py (opcode table), protocols 0 to 5.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from schema.errors import FormatError

Value: TypeAlias = Any
MAX_OPCODES = 600_000  # a saved tensor needs about forty
_MAX_INTEGER_BYTES = 9  # 64 bits and a sign byte
_MAX_DIGITS = 30  # int() of long strings takes quadratic time
_UINT8, _UINT16, _UINT32, _UINT64, _INT32, _DOUBLE = map(
    struct.Struct, ("<B", "<H", "<I", "<Q", "<i", ">d")
)
_KEYS = (str, int, float, bool, bytes, type(None))


@dataclass(frozen=True, slots=True)
class Global:
    """A module attribute by name, never imported."""

    module: str
    name: str

    @property
    def dotted(self) -> str:
        """Return the full name."""
        return f"{self.module}.{self.name}"


class PickleMachine:
    """The stack, the marks and the memo of one pickle.

    Attributes:
        construct: returns plain data for a global and its arguments
        persistent: returns plain data for a persistent id
    """

    def __init__(
        self,
        data: bytes,
        construct: Callable[[Value, Value], Value],
        persistent: Callable[[Value], Value],
    ) -> None:
        self.construct = construct
        self.persistent = persistent
        self._data = data
        self._at = 0
        self._stack: list[Value] = []
        self._marks: list[int] = []
        self._memo: dict[int, Value] = {}

    def run(self) -> Value:
        """Return the pickled value.

        Raises: FormatError at the first opcode that is unknown or does not fit the stack
        """
        data, operations = self._data, _OPERATIONS
        for _ in range(MAX_OPCODES):
            at = self._at
            code = data[at] if at < len(data) else -1
            self._at = at + 1
            if code == _STOP:
                return self._pop()
            operation = operations.get(code)
            if operation is None:
                raise self._wrong("an opcode that creates data", _opcode_name(code), at)
            try:
                operation(self)
            except FormatError:
                raise
            except (IndexError, KeyError, TypeError, ValueError, struct.error) as error:
                raise self._wrong(
                    "operands that fit the opcode",
                    f"{type(error).__name__}: {str(error)[:120]}",
                    at,
                ) from None
        raise self._wrong(f"at most {MAX_OPCODES} opcodes", "more", self._at)

    def _wrong(self, expected: str, found: str, at: int) -> FormatError:
        return FormatError(expected, f"{found} at byte {at} of the pickle", field="pickle")

    # ---- bytes
    def take(self, nbytes: int) -> bytes:
        """Return the next operand bytes."""
        end = self._at + nbytes
        if end > len(self._data):
            raise ValueError("the pickle ends inside an operand")
        found = self._data[self._at : end]
        self._at = end
        return found

    def number(self, form: struct.Struct) -> int:
        """Return the next integer operand."""
        found = form.unpack_from(self._data, self._at)[0]
        self._at += form.size
        return found

    def line(self) -> str:
        """Return the next operand line."""
        end = self._data.index(b"\n", self._at)
        return self.take(end + 1 - self._at)[:-1].decode()

    # ---- stack
    def push(self, value: Value) -> None:
        """Push a value onto the stack."""
        self._stack.append(value)

    def _pop(self) -> Value:
        if self._marks and len(self._stack) <= self._marks[-1]:
            raise self._wrong("a value on the stack", "a mark", self._at)
        if not self._stack:
            raise self._wrong("a value on the stack", "an empty stack", self._at)
        return self._stack.pop()

    def pop(self) -> Value:
        """Remove and return the topmost value."""
        return self._pop()

    def top(self) -> Value:
        """Return the topmost value."""
        return self._stack[-1]

    def mark(self) -> None:
        """Remember the height of the stack."""
        self._marks.append(len(self._stack))

    def to_mark(self) -> list[Value]:
        """Remove and return the values above the last mark, and the mark."""
        start = self._marks.pop()
        found = self._stack[start:]
        del self._stack[start:]
        return found

    def discard(self) -> None:
        """Remove the topmost value, or the mark if that is topmost."""
        if self._marks and self._marks[-1] == len(self._stack):
            self._marks.pop()
        else:
            self._pop()

    # ---- memo
    def remember(self, key: int) -> None:
        """Store the topmost value under an index."""
        self._memo[key] = self._stack[-1]

    def memoize(self) -> None:
        """Store the topmost value under the next index."""
        self.remember(len(self._memo))

    def recall(self, key: int) -> None:
        """Push a stored value onto the stack."""
        self.push(self._memo[key])

    # ---- containers and objects
    def append(self, values: list[Value]) -> None:
        """Append values to the list on top; other objects ignore them."""
        target = self._stack[-1]
        if isinstance(target, list):
            target.extend(values)  # pyright: ignore[reportUnknownMemberType] -- a list of anything

    def set_items(self, values: list[Value]) -> None:
        """Add alternating keys and values to the dictionary on top."""
        target = self._stack[-1]
        if not isinstance(target, dict):
            return
        for key, value in zip(values[::2], values[1::2], strict=True):
            if not isinstance(key, _KEYS):
                raise TypeError(f"a {type(key).__name__} as dictionary key")
            target[key] = value

    def dictionary(self, values: list[Value]) -> None:
        """Push a dictionary of alternating keys and values onto the stack."""
        self.push({})
        self.set_items(values)

    def reduce(self) -> None:
        """Replace a callable and its arguments by plain data for their result."""
        arguments = self._pop()
        self.push(self.construct(self._pop(), arguments))

    def new_with_keywords(self) -> None:
        """Replace a class, arguments and keywords by plain data for the object."""
        self._pop()
        self.reduce()

    def instance(self, module: str, name: str) -> None:
        """Replace marked arguments by plain data for an object of a class."""
        self.push(self.construct(Global(module, name), tuple(self.to_mark())))

    def old_object(self) -> None:
        """Replace a marked class and its arguments by plain data for the object."""
        kind, *arguments = self.to_mark()
        self.push(self.construct(kind, tuple(arguments)))

    def stack_global(self) -> None:
        """Replace two strings by the global they name."""
        name, module = self._pop(), self._pop()
        if not isinstance(name, str) or not isinstance(module, str):
            raise TypeError("a global whose name is not a string")
        self.push(Global(module, name))

    def take_tuple(self, count: int) -> None:
        """Replace the topmost values by a tuple of them."""
        values = [self._pop() for _ in range(count)]
        self.push(tuple(reversed(values)))

    def integer(self, text: str) -> None:
        """Push the integer of a protocol 0 line; 00 and 01 are bools."""
        if len(text) > _MAX_DIGITS:
            raise ValueError("an integer of more than 64 bits")
        self.push(text == "01" if text in ("00", "01") else int(text.rstrip("L")))

    def long_integer(self, nbytes: int) -> None:
        """Push a little-endian two's complement integer."""
        if nbytes > _MAX_INTEGER_BYTES:
            raise ValueError("an integer of more than 64 bits")
        self.push(int.from_bytes(self.take(nbytes), "little", signed=True))


def _opcode_name(code: int) -> str:
    return "the end of the pickle" if code < 0 else f"opcode {code:#04x}"


def _text(machine: PickleMachine, form: struct.Struct) -> None:
    raw = machine.take(machine.number(form))
    machine.push(raw.decode("utf-8", "replace"))


def _old_text(machine: PickleMachine, form: struct.Struct) -> None:
    """Byte strings of Python 2 are decoded as str by every torch release."""
    machine.push(machine.take(machine.number(form)).decode("utf-8", "backslashreplace"))


_STOP = ord(".")
_Operation: TypeAlias = Callable[[PickleMachine], Any]
_OPERATIONS: dict[int, _Operation] = {
    0x80: lambda m: m.take(1),  # PROTO
    0x95: lambda m: m.take(8),  # FRAME
    ord("("): PickleMachine.mark,
    ord("0"): PickleMachine.discard,
    ord("1"): PickleMachine.to_mark,
    ord("2"): lambda m: m.push(m.top()),
    ord("N"): lambda m: m.push(None),
    0x88: lambda m: m.push(True),
    0x89: lambda m: m.push(False),
    ord("I"): lambda m: m.integer(m.line()),
    ord("L"): lambda m: m.integer(m.line()),
    ord("J"): lambda m: m.push(m.number(_INT32)),
    ord("K"): lambda m: m.push(m.number(_UINT8)),
    ord("M"): lambda m: m.push(m.number(_UINT16)),
    0x8A: lambda m: m.long_integer(m.number(_UINT8)),
    0x8B: lambda m: m.long_integer(m.number(_UINT32)),
    ord("F"): lambda m: m.push(float(m.line())),
    ord("G"): lambda m: m.push(float(m.number(_DOUBLE))),
    ord("S"): lambda m: m.push(m.line().strip("'\"")),
    ord("T"): lambda m: _old_text(m, _UINT32),
    ord("U"): lambda m: _old_text(m, _UINT8),
    ord("V"): lambda m: m.push(m.line()),
    ord("X"): lambda m: _text(m, _UINT32),
    0x8C: lambda m: _text(m, _UINT8),
    0x8D: lambda m: _text(m, _UINT64),
    ord("B"): lambda m: m.push(m.take(m.number(_UINT32))),
    ord("C"): lambda m: m.push(m.take(m.number(_UINT8))),
    0x8E: lambda m: m.push(m.take(m.number(_UINT64))),
    0x96: lambda m: m.push(m.take(m.number(_UINT64))),  # BYTEARRAY8
    ord("]"): lambda m: m.push([]),
    ord("l"): lambda m: m.push(m.to_mark()),
    ord("a"): lambda m: m.append([m.pop()]),
    ord("e"): lambda m: m.append(m.to_mark()),
    ord(")"): lambda m: m.push(()),
    ord("t"): lambda m: m.push(tuple(m.to_mark())),
    0x85: lambda m: m.take_tuple(1),
    0x86: lambda m: m.take_tuple(2),
    0x87: lambda m: m.take_tuple(3),
    ord("}"): lambda m: m.push({}),
    ord("d"): lambda m: m.dictionary(m.to_mark()),
    ord("s"): lambda m: m.set_items([m.pop(), m.pop()][::-1]),
    ord("u"): lambda m: m.set_items(m.to_mark()),
    ord("p"): lambda m: m.remember(int(m.line()[:_MAX_DIGITS])),
    ord("q"): lambda m: m.remember(m.number(_UINT8)),
    ord("r"): lambda m: m.remember(m.number(_UINT32)),
    0x94: PickleMachine.memoize,
    ord("g"): lambda m: m.recall(int(m.line()[:_MAX_DIGITS])),
    ord("h"): lambda m: m.recall(m.number(_UINT8)),
    ord("j"): lambda m: m.recall(m.number(_UINT32)),
    ord("c"): lambda m: m.push(Global(m.line(), m.line())),
    0x93: PickleMachine.stack_global,
    ord("R"): PickleMachine.reduce,
    0x81: PickleMachine.reduce,  # NEWOBJ
    0x92: PickleMachine.new_with_keywords,
    ord("i"): lambda m: m.instance(m.line(), m.line()),
    ord("o"): PickleMachine.old_object,
    ord("b"): lambda m: m.pop(),  # BUILD: the state of an object that was not created
    ord("P"): lambda m: m.push(m.persistent(m.line())),
    ord("Q"): lambda m: m.push(m.persistent(m.pop())),
}
