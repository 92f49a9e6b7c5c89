"""Finds state that a module reassigns and torch.export drops: ``self.c = self.c + 1``.

A strict export drops such an assignment without a trace, so each run starts with the initial value.
It is detected in the source: a traced statement assigns to state that the program reads and
never writes.
"""

from __future__ import annotations

import ast
import linecache
import re
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind

_STATE = (InputKind.BUFFER, InputKind.CONSTANT_TENSOR)
_FRAME = re.compile(r'File "(?P<file>[^"<][^"]*)", line (?P<line>\d+), in (?P<name>\S+)')
# Methods that return the same values on another device or in another form.
_SAME = frozenset(
    (
        "bfloat16",
        "clone",
        "contiguous",
        "cpu",
        "cuda",
        "detach",
        "detach_",
        "double",
        "float",
        "half",
        "requires_grad_",
        "to",
        "type",
        "type_as",
    )
)
_ENDS = (ast.Return, ast.Raise, ast.Break, ast.Continue)


class LostUpdateWarning(UserWarning):
    """A module reassigns a tensor attribute, and the exported program does not."""


@dataclass
class _Traced:
    """The lines of a function that were traced, and the modules that it may be a method of.

    Attributes:
        modules: path and class of each module around these lines
    """

    lines: set[int] = field(default_factory=set[int])
    modules: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])


def warn_of_lost_updates(program: ExportedProgram) -> None:
    """Warn of each state that a traced statement assigns and the program does not write."""
    states = _read_only_states(program)
    if not states:
        return
    for file, functions in _traced(program).items():
        for line, text, target, kind in _lost_in(file, functions, states):
            name = target.rpartition(".")[2]
            keep = (
                ""
                if kind == InputKind.BUFFER
                else f', and register it with register_buffer("{name}")'
            )
            warnings.warn(
                f"{file}:{line}: `{text}` replaces the tensor {target}, and an exported program "
                "keeps only in-place writes: it starts each run with the initial value. "
                f"Write with copy_() instead of assigning{keep}",
                LostUpdateWarning,
                stacklevel=4,
            )


def _read_only_states(program: ExportedProgram) -> dict[str, Any]:
    """Return the kind of each buffer and constant that is read and never written, by target."""
    written = {spec.target for spec in program.graph_signature.output_specs}
    nodes = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
    in_place = {_base(node.args[0]) for node in program.graph.nodes if _writes(node)}
    return {
        spec.target: spec.kind
        for spec in program.graph_signature.input_specs
        if spec.kind in _STATE and spec.target and spec.target not in written
        if nodes[spec.arg.name].users and nodes[spec.arg.name] not in in_place
    }


def _writes(node: torch.fx.Node) -> bool:
    schema: Any = getattr(node.target, "_schema", None)
    return node.op == "call_function" and bool(node.args) and getattr(schema, "is_mutable", False)


def _base(node: Any) -> Any:  # noqa: ANN401
    while isinstance(node, torch.fx.Node) and node.op == "call_function" and node.args:
        node = node.args[0]
    return node


def _traced(program: ExportedProgram) -> dict[str, dict[str, _Traced]]:
    """Return the traced functions, by file and name."""
    found: dict[str, dict[str, _Traced]] = {}
    for node in program.graph.nodes:
        stack: Mapping[str, Any] = node.meta.get("nn_module_stack") or {}
        modules = {(str(path), _class(kind)) for path, kind in stack.values()}
        for frame in _FRAME.finditer(node.meta.get("stack_trace") or ""):
            of_file = found.setdefault(frame["file"], {})
            one = of_file.setdefault(frame["name"], _Traced())
            one.lines.add(int(frame["line"]))
            one.modules |= modules
    return found


def _class(kind: Any) -> str:  # noqa: ANN401 - a class, or its name
    return getattr(kind, "__name__", str(kind)).rpartition(".")[2]


def _lost_in(
    file: str, functions: Mapping[str, _Traced], states: Mapping[str, Any]
) -> Iterator[tuple[int, str, str, Any]]:
    lines = linecache.getlines(file)
    for owner, method in _assigning_methods("".join(lines)):
        traced = functions.get(method.name)
        end = method.end_lineno or 0
        if traced is None or not any(method.lineno <= line <= end for line in traced.lines):
            continue
        paths = [path for path, kind in traced.modules if kind == owner] or [
            max((path for path, _ in traced.modules), key=len, default="")
        ]
        for statement, chain in _last_assignments(method, traced.lines).values():
            for target, kind in states.items():
                if any(_fits(target, path, chain) for path in paths):
                    text = lines[statement.lineno - 1].strip()
                    yield statement.lineno, text, target.removeprefix("self___"), kind


@lru_cache(maxsize=256)  # parsing the sources of ResNet18 again took half of its lowering
def _assigning_methods(text: str) -> tuple[tuple[str, ast.FunctionDef], ...]:
    """Return class and method of each method that assigns to an attribute of its module."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return ()
    owners = (one for one in ast.walk(tree) if isinstance(one, ast.ClassDef))
    methods = ((one.name, each) for one in owners for each in one.body)
    return tuple(
        (name, each)
        for name, each in methods
        if isinstance(each, ast.FunctionDef) and _assigns_to_itself(each)
    )


def _assigns_to_itself(method: ast.FunctionDef) -> bool:
    if not method.args.args:
        return False
    myself = method.args.args[0].arg
    statements = (one for one in ast.walk(method) if isinstance(one, ast.Assign))
    return any(_chain(target, myself) for one in statements for target, _ in _pairs(one))


def _last_assignments(
    method: ast.FunctionDef, lines: set[int]
) -> dict[str, tuple[ast.Assign, list[str]]]:
    """Return the last traced assignment to each attribute that changes its value."""
    myself = method.args.args[0].arg
    locals_ = _locals(method)
    found: dict[str, tuple[ast.Assign, list[str]]] = {}
    for statement in _executed(method.body, lines):
        for target, value in _pairs(statement):
            chain = _chain(target, myself)
            if not chain:
                continue
            found.pop("".join(chain), None)
            if not _is_same(value, chain, myself, locals_):
                found["".join(chain)] = statement, chain
    return found


def _pairs(statement: ast.Assign) -> Iterator[tuple[ast.expr, ast.expr]]:
    for target in statement.targets:
        if not isinstance(target, (ast.Tuple, ast.List)):
            yield target, statement.value
            continue
        own = statement.value
        values = own.elts if isinstance(own, (ast.Tuple, ast.List)) else []
        fits = len(values) == len(target.elts)
        for place, element in enumerate(target.elts):
            yield element, values[place] if fits else own


def _locals(method: ast.FunctionDef) -> dict[str, list[ast.expr]]:
    found: dict[str, list[ast.expr]] = {}
    for statement in ast.walk(method):
        if isinstance(statement, ast.Assign):
            for target, value in _pairs(statement):
                if isinstance(target, ast.Name):
                    found.setdefault(target.id, []).append(value)
    return found


def _executed(block: list[ast.stmt], lines: set[int]) -> Iterator[ast.Assign]:
    """Yield the assignments of a block that were certainly traced, in order."""
    reached = [any(_covers(one, line) for line in lines) for one in block]
    for place, statement in enumerate(block):
        if isinstance(statement, ast.Assign) and _is_reached(block, reached, place):
            yield statement
        for inner in ("body", "orelse", "finalbody"):
            nested: Any = getattr(statement, inner, None)
            if isinstance(nested, list) and not isinstance(statement, ast.FunctionDef):
                yield from _executed(nested, lines)  # pyright: ignore[reportUnknownArgumentType]


def _covers(statement: ast.stmt, line: int) -> bool:
    return statement.lineno <= line <= (statement.end_lineno or statement.lineno)


def _is_reached(block: list[ast.stmt], reached: list[bool], place: int) -> bool:
    if reached[place] or any(reached[place + 1 :]):
        return True  # a block is left only at its end, or by the statements below
    before = [at for at in range(place) if reached[at]]
    if not before:
        return False
    between = block[before[-1] : place]
    return not any(isinstance(node, _ENDS) for one in between for node in ast.walk(one))


def _chain(node: ast.expr, myself: str) -> list[str]:
    """Return the names from ``self`` to an attribute or an item; empty if it is neither."""
    names: list[str] = []
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        if isinstance(node, ast.Attribute):
            names.append(node.attr)
        elif isinstance(node.slice, ast.Constant):
            names.append(str(node.slice.value))
        else:
            return []
        node = node.value
    return names[::-1] if isinstance(node, ast.Name) and node.id == myself else []


def _is_same(
    value: ast.expr, chain: list[str], myself: str, locals_: Mapping[str, list[ast.expr]]
) -> bool:
    """Return whether an expression is the attribute itself, maybe moved or converted."""
    if isinstance(value, ast.IfExp):  # which branch ran is unknown
        return any(_is_same(v, chain, myself, locals_) for v in (value.body, value.orelse))
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        if value.func.attr not in _SAME:
            return False
        value = value.func.value
    if isinstance(value, ast.Name):
        given = locals_.get(value.id, [])
        return bool(given) and all(_is_same(one, chain, myself, {}) for one in given)
    return _chain(value, myself) == chain


def _fits(target: str, path: str, chain: list[str]) -> bool:
    """Return whether a state is the attribute of a module at a dotted path.

    Torch names items of lists and dicts by their source with all signs replaced.
    """
    requested = _letters("".join((path, *chain)))
    return _letters(target) in (requested, f"self{requested}")


def _letters(name: str) -> str:
    return re.sub(r"[\W_]+", "", name)
