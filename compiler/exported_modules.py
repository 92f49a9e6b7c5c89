"""Modules around an export: a method as ``forward``, layers that train in the exported graph.

The exporter of the worker loads this file by its path into interpreters that have torch and none
of our packages: it imports nothing else.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from types import FunctionType, MethodType
from typing import Any, cast

import torch
from torch.export import ExportedProgram


def method_as_forward(method: MethodType, *, strict: bool = False) -> torch.nn.Module:
    """Return a module with the same weights whose ``forward`` is a bound method of a module.

    Args:
        method: of a ``torch.nn.Module``
        strict: the bytecode of the method is traced
    """
    other: Any = copy.copy(method.__self__)
    if strict:
        other.forward = MethodType(method.__func__, other)
    else:
        other.forward = _beside_forward(other, MethodType(_named_forward(method.__func__), other))
    return other


def _named_forward(function: Any) -> Any:  # noqa: ANN401 - a function, or another callable
    """Return a function whose frames are called ``forward``.

    torch records the lines of such frames only: nodes of a method would have no line of their own.
    """
    if not isinstance(function, FunctionType) or hasattr(function, "__wrapped__"):
        return function
    code = function.__code__.replace(co_name="forward")
    name, defaults, closure = function.__name__, function.__defaults__, function.__closure__
    named = FunctionType(code, function.__globals__, name, defaults, closure)
    named.__kwdefaults__ = function.__kwdefaults__
    return functools.update_wrapper(named, function)


def _beside_forward(module: Any, method: MethodType) -> Callable[..., Any]:  # noqa: ANN401
    """Return a method as ``forward`` of a module that may call the module's own ``forward``."""
    held = cast("dict[str, Any]", vars(module))
    own = held.get("forward")  # of this object alone, else that of its class

    @functools.wraps(method)
    def called(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        if own is None:
            del module.forward
        else:
            module.forward = own
        try:
            return method(*args, **kwargs)
        finally:
            module.forward = called

    return called


def trained_layers(program: ExportedProgram) -> list[str]:
    """Return the modules, or nodes, whose calls compute otherwise after ``eval()``."""
    nodes = (node for node in program.graph.nodes if node.op == "call_function")
    return list(dict.fromkeys(_module_of(node) for node in nodes if _trains(node)))


def _trains(node: Any) -> bool:  # noqa: ANN401 - a node
    schema: Any = getattr(node.target, "_schema", None)
    if schema is None:
        return False
    values: dict[str, Any] = (
        dict(zip((a.name for a in schema.arguments), node.args, strict=False)) | node.kwargs
    )
    training = values.get("train", values.get("training"))
    probability = next((values[name] for name in ("p", "dropout") if name in values), 1.0)
    return training is True and probability != 0


def _module_of(node: Any) -> str:  # noqa: ANN401 - a node
    stack: dict[str, tuple[str, Any]] = node.meta.get("nn_module_stack") or {}
    innermost = next((path for path, _ in reversed(stack.values())), "")
    return innermost or str(node.name)
