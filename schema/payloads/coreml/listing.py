"""Reads the text form of a MIL program in a compiled model (``model.mil``).

Statements are ``TYPE name = operation(argument = value, …)[attribute = value, …];`` in functions
``func name<opset>(TYPE name, …) { … } -> (name, …);``. Nested blocks are rejected.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import islice
from types import MappingProxyType

from schema.errors import FormatError
from schema.graph import Argument, Dim, Graph, GraphNode, GraphValue, NodeKind, TensorMeta
from schema.payloads.coreml.elements import element_bytes, expect_count, shaped
from schema.payloads.coreml.mil import Function
from schema.payloads.coreml.types import DATATYPES
from schema.payloads.names import unique

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|->|[^\s"()\[\]<>{},;=]+|[()\[\]<>{},;=]')
_MAX_TEXT = 32 << 20
_MAX_WORDS = 1_000_000  # a program of 10,000 operations has half of it
_MAX_DEPTH = 32
_SHOWN = 64  # scalars of a literal; longer ones are constants of the payload
_CLOSING = {"(": ")", "[": "]", "{": "}", "<": ">"}
_SHORT = {"fp16": "float16", "fp32": "float32", "fp64": "float64", "bf16": "bfloat16"}
_SCALARS = {name: scalar_type for name, scalar_type, _ in DATATYPES.values()}
_CODES = {name: code for name, _, code in DATATYPES.values()}


@dataclass(frozen=True, slots=True)
class _Literal:
    """A typed value: spelled out, or where its bytes are: in a weight file, or the bytes."""

    value: GraphValue
    place: tuple[str, int] | memoryview | None = None


def read_listing(data: memoryview) -> dict[str, Function]:
    """Return the functions of a program by name.

    Raises: FormatError for any other text
    """
    if len(data) > _MAX_TEXT:
        raise FormatError(f"a text below {_MAX_TEXT} bytes", f"{len(data)} bytes")
    found = _TOKEN.finditer(bytes(data).decode("utf-8", "backslashreplace"))
    words = [match[0] for match in islice(found, _MAX_WORDS + 1)]
    if len(words) > _MAX_WORDS:
        raise FormatError(f"at most {_MAX_WORDS} words", "more")
    return _ListingReader(words).program()


class _ListingReader:
    """Iterates over the words of a program."""

    def __init__(self, words: list[str]) -> None:
        self._words = words
        self._at = 0
        self._aside = 0
        self._values: dict[str, GraphValue] = {}
        self._weights: dict[str, tuple[str, int] | memoryview] = {}
        self._names: set[str] = set()

    def program(self) -> dict[str, Function]:
        """Return all functions."""
        self._expect("program")
        while self._peek() in ("(", "["):
            self._skip()
        self._expect("{")
        found: dict[str, Function] = {}
        while self._peek() == "func":
            function = self._function()
            found[function.graph.name] = function
        self._expect("}")
        return found

    def _peek(self, ahead: int = 0) -> str:
        at = self._at + ahead
        return self._words[at] if at < len(self._words) else ""

    def _next(self) -> str:
        if self._at >= len(self._words):
            raise FormatError("more of a MIL program", "the end of the text")
        self._at += 1
        return self._words[self._at - 1]

    def _expect(self, requested: str) -> None:
        found = self._next()
        if found != requested:
            raise FormatError(f"{requested!r} in a MIL program", repr(found))

    def _taken(self, requested: str) -> bool:
        if self._peek() != requested:
            return False
        self._at += 1
        return True

    def _skip(self) -> None:
        """Pass over a bracket and all inside it."""
        opening = self._next()
        closing, depth = _CLOSING[opening], 1
        while depth:
            token = self._next()
            depth += (token == opening) - (token == closing)

    def _function(self) -> Function:
        self._values, self._weights, self._names = {}, {}, set()
        self._expect("func")
        name = self._next()
        self._expect("<")
        opset = self._next()
        self._expect(">")
        self._expect("(")
        inputs: list[str] = []
        states: list[str] = []
        while not self._taken(")"):
            is_state = self._peek() == "state"
            inputs.append(self._declaration().name)
            states += inputs[-1:] if is_state else []
            self._taken(",")
        while self._peek() in ("(", "["):
            self._skip()
        self._expect("{")
        nodes: list[GraphNode] = []
        while not self._taken("}"):
            nodes.append(self._statement(len(nodes)))
        self._expect("->")
        outputs = self._names_in_brackets()
        self._taken(";")
        for used in (*outputs, *(one for node in nodes for one in node.inputs)):
            self._values.setdefault(used, GraphValue(used, kind="other"))
        facts = MappingProxyType({"opset": opset, **({"states": tuple(states)} if states else {})})
        graph = Graph(name, tuple(nodes), self._values, tuple(inputs), outputs, attributes=facts)
        return Function(graph, opset, self._weights)

    def _names_in_brackets(self) -> tuple[str, ...]:
        self._expect("(")
        found: list[str] = []
        while not self._taken(")"):
            found.append(self._next())
            self._taken(",")
        return tuple(found)

    def _declaration(self) -> GraphValue:
        kind, meta = self._type(0)
        value = GraphValue(self._next(), meta, kind)
        self._values[value.name] = value
        return value

    def _type(self, depth: int) -> tuple[str, TensorMeta | None]:
        if depth > _MAX_DEPTH:
            raise FormatError(f"types nested at most {_MAX_DEPTH} deep", "deeper nesting")
        word = self._next()
        if self._peek() != "<":
            return ("str" if word == "string" else "tensor"), _meta(word, ())
        if word == "state":
            self._expect("<")
            found = self._type(depth + 1)
            self._expect(">")
            return found
        if word != "tensor":
            self._skip()
            return ("list" if word == "list" else "other"), None
        self._expect("<")
        element = self._next()
        self._expect(",")
        self._expect("[")
        sizes: list[Dim] = []
        while not self._taken("]"):
            size = self._next()
            sizes.append(int(size) if size.isdecimal() and len(size) < 20 else "?")
            self._taken(",")
        self._expect(">")
        is_text = element == "string" and not sizes
        return ("str" if is_text else "tensor"), _meta(element, tuple(sizes))

    def _statement(self, index: int) -> GraphNode:
        outputs: list[GraphValue] = []
        if self._peek(1) != "(":  # an operation without results, such as the write of a state
            outputs.append(self._declaration())
            while self._taken(","):
                outputs.append(self._declaration())
            self._expect("=")
        kind = self._next()
        owner = outputs[0].name if outputs else f"{kind}_{index}"
        self._expect("(")
        arguments = self._arguments(owner, ")")
        facts: dict[str, object] = {}
        if self._taken("["):
            for one in self._arguments(owner, "]"):
                if kind == "const" and one.name == "val":
                    self._keep(outputs, one)
                elif one.values:
                    arguments.append(one)
                else:
                    facts[one.name] = one.literal
        if self._peek() in ("{", "("):
            raise FormatError("a MIL program without nested blocks", f"one in {kind}")
        self._expect(";")
        return GraphNode(
            unique(f"{owner}:{kind}", index, self._names),
            NodeKind.GET_ATTR if kind == "const" else NodeKind.CALL,
            kind,
            tuple(arguments),
            tuple(one.name for one in outputs),
            attributes=MappingProxyType(facts),
        )

    def _keep(self, outputs: list[GraphValue], stored: Argument) -> None:
        """Set the value of a constant: the literal, or the weight stored for it."""
        for one in outputs:
            if not stored.values:
                self._values[one.name] = GraphValue(one.name, one.tensor, one.kind, stored.literal)
                continue
            aside = stored.values[0]
            self._weights[one.name] = self._weights.pop(aside)
            del self._values[aside]
            self._values[one.name] = GraphValue(one.name, one.tensor, one.kind, constant=one.name)
            return

    def _arguments(self, owner: str, closing: str) -> list[Argument]:
        found: list[Argument] = []
        while not self._taken(closing):
            name = self._next()
            self._expect("=")
            found.append(self._argument(owner, name))
            self._taken(",")
        return found

    def _argument(self, owner: str, name: str) -> Argument:
        if not self._taken("("):
            return self._merged(owner, name, [self._value()])
        items: list[str | _Literal] = []
        while not self._taken(")"):
            items.append(self._value())
            self._taken(",")
        return self._merged(owner, name, items)

    def _merged(self, owner: str, name: str, items: list[str | _Literal]) -> Argument:
        names: list[str] = []
        literals: list[object] = []
        for item in items:
            if isinstance(item, str):
                names.append(item)
            elif item.place is not None:
                built = self._free(f"{owner}.{name}")
                self._values[built] = GraphValue(
                    built, item.value.tensor, item.value.kind, constant=built
                )
                self._weights[built] = item.place
                names.append(built)
            else:
                literals.append(item.value.literal)
        literal = literals[0] if len(literals) == 1 else tuple(literals) or None
        return Argument(name, tuple(names), literal)

    def _free(self, name: str) -> str:
        """Return an unused name and reserve it."""
        built = name
        while True:
            self._aside += 1
            built = unique(built, self._aside, self._names)
            if built not in self._values:
                return built

    def _value(self) -> str | _Literal:
        """Return the name of a value, or a literal with its type."""
        if self._peek(1) not in ("<", "("):
            return self._next()
        kind, meta = self._type(0)
        self._expect("(")
        if self._peek() == "BLOBFILE":
            place = self._blob_file()
            self._expect(")")
            return _Literal(GraphValue("", meta, kind), place)
        items: list[object] = []
        self._items(items)
        sizes = meta.sizes if meta is not None else ("?",)
        if not sizes and len(items) == 1:
            return _Literal(GraphValue("", meta, kind, items[0]))
        expect_count(len(items), sizes)
        if len(items) <= _SHOWN:
            return _Literal(GraphValue("", meta, kind, shaped(items, sizes)))
        name = meta.dtype if meta is not None else ""
        data = element_bytes(items, name, _CODES.get(name, ""))
        return _Literal(GraphValue("", meta, kind, f"({len(items)} items inline)"), data)

    def _blob_file(self) -> tuple[str, int]:
        self._expect("BLOBFILE")
        self._expect("(")
        facts = {one.name: one.literal for one in self._arguments("", ")")}
        path, offset = facts.get("path"), facts.get("offset")
        if not isinstance(path, str) or not isinstance(offset, int):
            raise FormatError("a weight file with path and offset", repr(facts)[:80])
        return path, offset

    def _items(self, items: list[object]) -> None:
        """Collect the scalars and strings up to the bracket that ends a literal."""
        depth = 1
        while depth:
            token = self._next()
            if token in _CLOSING:
                depth += 1
            elif token in (")", "]", "}", ">"):
                depth -= 1
            elif token not in (",", "="):
                items.append(_number(token))


def _number(token: str) -> object:
    if token.startswith('"'):
        return token[1:-1].replace('\\"', '"')
    if token in ("true", "false"):
        return token == "true"
    try:
        return int(token) if len(token) < 20 else token
    except ValueError:
        pass
    try:
        return float.fromhex(token) if "0x" in token.lower() else float(token)
    except (ValueError, OverflowError):
        return token


def _meta(element: str, sizes: tuple[Dim, ...]) -> TensorMeta:
    name = _SHORT.get(element, element)
    return TensorMeta(_SCALARS.get(name, -1), sizes, type_name=name)
