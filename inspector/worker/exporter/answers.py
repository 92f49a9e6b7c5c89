"""What a user's function may return: a module with inputs, several methods, exported programs."""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch.export import ExportedProgram

from .compiler_file import method_as_forward
from .errors import AnswerError

if TYPE_CHECKING:
    from typing import TypeGuard

FORWARD = "forward"
EXPECTED = (
    "expected (module, inputs), (module, inputs, kwargs, dynamic_shapes, methods), a dict with"
    " these names, or an ExportedProgram"
)
_NAMES = ("module", "inputs", "kwargs", "dynamic_shapes", "methods", "constant_methods")


@dataclass(frozen=True)
class MethodEntry:
    """One method to export."""

    module: Any
    inputs: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    dynamic_shapes: Any


def entries_of(answer: Any) -> tuple[dict[str, Any], Mapping[str, Any]]:  # noqa: ANN401
    """Return programs to export, and constants, by method."""
    if isinstance(answer, ExportedProgram):
        return {FORWARD: answer}, {}
    if _is_list(answer):
        if len(answer) > len(_NAMES):
            raise AnswerError(
                f"a {type(answer).__name__} of {len(answer)} was returned; {EXPECTED}"
            )
        answer = {_NAMES[at]: part for at, part in enumerate(answer)}
    if not _is_mapping(answer) or not answer:
        found = "nothing" if answer is None else _kind(answer)
        raise AnswerError(f"{found} was returned; {EXPECTED}")
    given: Mapping[str, Any] = answer
    if "module" not in given and "methods" not in given:
        if any(name in given for name in _NAMES):
            raise AnswerError(f"a dict without 'module' was returned; {EXPECTED}")
        given = {"methods": given}
    strange = [str(name) for name in given if name not in _NAMES]
    if strange:
        raise AnswerError(f"a dict with {strange[0]!r} was returned; {EXPECTED}")
    entries: dict[str, Any] = {FORWARD: _entry(FORWARD, given)} if "module" in given else {}
    for name, one in _named(given, "methods").items():
        if name in entries or not isinstance(name, str):
            raise AnswerError(f"the method name {name!r} is there twice or is not a string")
        entries[name] = _entry(name, one)
    return entries, _named(given, "constant_methods")


def _named(given: Mapping[str, Any], part: str) -> Mapping[Any, Any]:
    found = given.get(part)
    if found is not None and not _is_mapping(found):
        raise AnswerError(f"the {part} are {_kind(found)}, expected a dict")
    return {} if found is None else found


def _kind(value: object) -> str:
    """Return the type of a value with its article, as ``an int``."""
    name = type(value).__name__
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"


def _is_list(value: object) -> TypeGuard[tuple[Any, ...] | list[Any]]:
    return isinstance(value, (tuple, list))


def _is_mapping(value: object) -> TypeGuard[Mapping[Any, Any]]:
    return isinstance(value, Mapping)


def _entry(name: str, given: Any) -> Any:  # noqa: ANN401
    if isinstance(given, ExportedProgram):
        return given
    if _is_list(given):
        given = {_NAMES[at]: part for at, part in enumerate(given[:4])}
    if not _is_mapping(given) or "module" not in given:
        raise AnswerError(f"method {name!r} is {_kind(given)}; {EXPECTED}")
    module, inputs = given["module"], given.get("inputs")
    if isinstance(module, ExportedProgram):
        return module
    if inputs is None and "inputs" not in given:
        raise AnswerError(f"method {name!r} has no example inputs; {EXPECTED}")
    if isinstance(inputs, torch.Tensor):
        inputs = (inputs,)
    if not _is_list(inputs):
        raise AnswerError(f"the inputs of method {name!r} are {_kind(inputs)}, expected a tuple")
    kwargs = _named(given, "kwargs")
    return MethodEntry(_module(name, module), tuple(inputs), kwargs, given.get("dynamic_shapes"))


def _module(name: str, given: Any) -> torch.nn.Module:  # noqa: ANN401
    """Return a module; of a bound method one whose forward it is, with the same weights."""
    if isinstance(given, torch.jit.ScriptModule):
        raise AnswerError(
            f"method {name!r} is in TorchScript, which cannot be exported; expected the original"
            " torch.nn.Module"
        )
    if isinstance(given, torch.nn.Module):
        return given
    owner, kind = getattr(given, "__self__", None), _kind(given)
    if isinstance(owner, torch.nn.Module) and isinstance(given, types.MethodType):
        return method_as_forward(given)
    if isinstance(given, type) and issubclass(given, torch.nn.Module):
        raise AnswerError(
            f"method {name!r} is the class {given.__name__}; expected an object of it"
        )
    raise AnswerError(f"method {name!r} is {kind}, expected a torch.nn.Module")
