"""The call of a delegate as an operator, so that lowered modules can be traced and exported."""

from __future__ import annotations

import importlib
import sys
from typing import Any, cast

import torch
import torch._higher_order_ops.utils as higher_order
import torch.fx.experimental.proxy_tensor as proxies
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils import _pytree as pytree

from compiler.dialect.templates import tensors_in, walk
from compiler.errors import CompileError
from compiler.untyped import HigherOrderOperator, native

NAME = "executorch_call_delegate"
_keys: Any = native.DispatchKey
_proxies: Any = proxies
_operators: Any = importlib.import_module("torch._ops")
_functional: Any = cast("Any", higher_order)


class CallDelegate(HigherOrderOperator):
    """Calls a lowered module; in Python that runs the program its payload was compiled from."""

    def __init__(self) -> None:
        super().__init__(NAME)  # pyright: ignore[reportUnknownMemberType] - torch types none

    def __call__(self, lowered_module: Any, *args: Any) -> Any:  # noqa: ANN401
        """Return the results of the original program of a lowered module."""
        whole: Any = super()
        return whole.__call__(lowered_module, *args)


def _own_operator() -> CallDelegate:
    """Return our operator; a stock package that was loaded before keeps its operator of that name.

    Otherwise the generated code of graphs, which names it, must find ours: torch also has one,
    which passes
    nested inputs on without flattening.
    """
    named: dict[str, Any] = _operators._higher_order_ops
    before = named.get(NAME)
    ours = CallDelegate()
    if before is not None and "executorch.exir" in sys.modules:
        named[NAME] = before
    return ours


executorch_call_delegate: Any = _own_operator()


def is_lowered_module(value: object) -> bool:
    """Return whether a value is a lowered module."""
    return type(value).__name__ == "LoweredBackendModule"


def get_lowered_module_name(root: torch.nn.Module, lowered_module: torch.nn.Module) -> str:
    """Return the name of a lowered module in a module; a new one is added under an unused name."""
    for name, child in root.named_children():
        if child is lowered_module and name.startswith("lowered_module_"):
            return name
    index = 0
    while hasattr(root, f"lowered_module_{index}"):
        index += 1
    root.add_module(f"lowered_module_{index}", lowered_module)
    return f"lowered_module_{index}"


def get_lowered_submodules(
    graph_module: torch.fx.GraphModule,
) -> list[tuple[str, torch.nn.Module, torch.fx.Node]]:
    """Return the lowered modules that a graph calls: name, module and call of each, in order."""
    found: list[tuple[str, torch.nn.Module, torch.fx.Node]] = []
    for node in graph_module.graph.nodes:
        if node.op == "call_function" and node.target is executorch_call_delegate:
            home = node.args[0]
            assert isinstance(home, torch.fx.Node)
            name = str(home.target)
            found.append((name, graph_module.get_submodule(name), node))
    return found


def get_lowered_backend_modules(graph_module: torch.fx.GraphModule) -> list[torch.nn.Module]:
    """Return the lowered modules that a graph calls, in order."""
    return [module for _, module, _ in get_lowered_submodules(graph_module)]


def _run(lowered_module: Any, *args: Any) -> Any:  # noqa: ANN401
    plain = walk(lambda leaf: leaf, list(args))  # fx's immutable lists become lists
    program = lowered_module.original_module
    spec, leaves = program.call_spec.in_spec, pytree.tree_leaves(plain)
    if spec is None or spec.num_leaves != len(leaves):
        return program.module()(*plain)
    nested, named = pytree.tree_unflatten(leaves, spec)  # edge programs call it with the leaves
    return program.module()(*nested, **named)


def _run_fake(mode: Any, lowered_module: Any, *args: Any) -> Any:  # noqa: ANN401
    with mode:
        known = lowered_module.fake_results(args)
        if known is not None:
            return known
        before, mode.allow_non_fake_inputs = mode.allow_non_fake_inputs, True
        try:
            return _run(lowered_module, *args)
        finally:
            mode.allow_non_fake_inputs = before


def _trace(mode: Any, lowered_module: Any, *args: Any) -> Any:  # noqa: ANN401
    if not is_lowered_module(lowered_module):
        raise CompileError(
            f"the first argument of {NAME} must be a LoweredBackendModule, found "
            f"{type(lowered_module).__name__}"
        )
    with _proxies.disable_proxy_modes_tracing():
        out = executorch_call_delegate(lowered_module, *args)
    tracer = mode.tracer
    name = get_lowered_module_name(tracer.root, lowered_module)
    home = tracer.create_proxy("get_attr", name, (), {})
    given = walk(mode.tracer.unwrap_proxy, list(args))
    built = tracer.create_proxy("call_function", executorch_call_delegate, (home, *given), {})
    return _proxies.track_tensor_tree(out, built, constant=None, tracer=tracer)


def _without_gradients(lowered_module: Any, *args: Any) -> Any:  # noqa: ANN401
    guard = native._AutoDispatchBelowAutograd
    with guard():
        out = executorch_call_delegate(lowered_module, *args)
    if any(tensor.requires_grad for tensor in tensors_in(list(args))):
        return walk(_wanting_gradients, out)
    return out


def _wanting_gradients(leaf: Any) -> Any:  # noqa: ANN401
    if not isinstance(leaf, torch.Tensor) or not leaf.is_floating_point():
        return leaf
    return leaf.detach().requires_grad_()


def _functionalised(ctx: Any, lowered_module: Any, *args: Any) -> Any:  # noqa: ANN401
    given = tuple(ctx.unwrap_tensors(argument) for argument in args)
    with ctx.redispatch_to_next():
        return ctx.wrap_tensors(executorch_call_delegate(lowered_module, *given))


executorch_call_delegate.py_impl(_keys.CompositeExplicitAutograd)(_run)
executorch_call_delegate.py_impl(_keys.Autograd)(_without_gradients)
executorch_call_delegate.py_impl(FakeTensorMode)(_run_fake)
executorch_call_delegate.py_impl(_proxies.ProxyTorchDispatchMode)(_trace)
executorch_call_delegate.py_functionalize_impl(_functionalised)
for _key in ("PythonDispatcher", "PythonTLSSnapshot", "ADInplaceOrView", "AutocastCPU"):
    executorch_call_delegate.fallthrough(getattr(_keys, _key))
