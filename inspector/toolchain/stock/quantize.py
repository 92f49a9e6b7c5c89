"""Quantizes an exported program with the package's own quantizer."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch.export import Dim
from torch.utils import _pytree

from compiler.backends.vendors.create import VendorError, create_quantizer_of
from inspector.toolchain.handed_files import CALLS_FILE, PROGRAM_FILE, QUANTIZED_FILE
from inspector.toolchain.stock.handing import load, register_operators
from inspector.toolchain.stock.package import StockError, part_or_none
from inspector.worker.exporter import redirect_logs
from schema.recipe.assignments import parse_assignment
from schema.vendors.names import quantizer_vendor

_STEPS = ("torchao.quantization.pt2e.quantize_pt2e", "torch.ao.quantization.quantize_pt2e")
_PLAIN = {
    "dim_order_ops._to_dim_order_copy.default": torch.ops.aten._to_copy.default,
    "dim_order_ops._clone_dim_order.default": torch.ops.aten.clone.default,
}
_MODES = ("static", "dynamic", "none")


def quantized_program(
    program: Any,  # noqa: ANN401
    how: Mapping[str, Any],
    method: str,
    quantizer: str,
    vendors: Mapping[str, Any] | None = None,
) -> Any:  # noqa: ANN401
    """Return a program quantized by a recipe; the given one is not changed.

    Args:
        program: as exported
        how: the quantization of the recipe
        method: that the program is
        quantizer: ``module:class`` in the package
        vendors: name and options of a vendor's quantizer to use instead, None for none

    Raises: StockError naming the missing or invalid part
    """
    steps = next((found for name in _STEPS if (found := _module(name)) is not None), None)
    if steps is None:
        raise StockError("quantizing needs torchao, which this interpreter has not")
    calls = _calls(how.get("calibration") or "", program, method)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of torchao, about itself
        chosen = _quantizer(how, quantizer) if vendors is None else _of_vendor(vendors)
        converted = _converted(steps, program, chosen, calls)
        return torch.export.export(converted, calls[0], dynamic_shapes=_shapes(program))


def quantize_handed(asked: Mapping[str, Any], notify: Callable[..., None]) -> dict[str, Any]:
    """Quantize a program of a folder by a vendor's quantizer, into the same folder."""
    redirect_logs(notify)
    register_operators(asked["libraries"])
    folder = Path(asked["folder"])
    program = load(folder / PROGRAM_FILE)
    path = folder / CALLS_FILE
    calls = _calls(str(path) if path.is_file() else "", program, "")
    steps = next((found for name in _STEPS if (found := _module(name)) is not None), None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of torchao, about itself
        chosen = _of_vendor(asked["quantizer"])
        converted = with_plain_copies(_converted(steps, program, chosen, calls))
        made = torch.export.export(converted, calls[0], dynamic_shapes=_shapes(program))
        torch.export.save(made, folder / QUANTIZED_FILE)
    return {}


def with_plain_copies(module: Any) -> Any:  # noqa: ANN401
    """Write the package's copies in a graph module as ATen's, and return it.

    Quantizers insert them as casts (Arm's for int64 inputs). An interpreter without the package
    cannot read them. Copies into another order of dimensions stay.
    """
    for node in module.graph.nodes:
        plain = _PLAIN.get(str(node.target)) if node.op == "call_function" else None
        order = node.kwargs.get("dim_order")
        if plain is not None and (order is None or list(order) == sorted(order)):
            node.target = plain
            node.kwargs = {key: one for key, one in node.kwargs.items() if key != "dim_order"}
    module.recompile()
    return module


def _converted(steps: Any, program: Any, chosen: Any, calls: list[tuple[Any, ...]]) -> Any:  # noqa: ANN401
    if hasattr(chosen, "quantize"):  # a vendor's own steps
        prepare = getattr(chosen, "prepared", None)
        return chosen.quantize(_captured(prepare(program) if prepare else program), calls)
    prepared = steps.prepare_pt2e(_captured(program), chosen)
    with torch.no_grad():
        for given in calls:
            prepared(*given)
    return steps.convert_pt2e(prepared)


def _captured(program: Any) -> Any:  # noqa: ANN401
    """Return the graph without checks of inputs, which vendors' passes cannot read."""
    try:
        return program.module(check_guards=False)
    except TypeError:  # of an older torch, which adds none
        return program.module()


def _of_vendor(asked: Mapping[str, Any]) -> Any:  # noqa: ANN401
    vendor = quantizer_vendor(str(asked["name"]))
    if vendor is None:
        raise StockError(f"unknown quantizer {asked['name']!r}")
    try:
        return create_quantizer_of(vendor, asked["options"])
    except VendorError as error:
        raise StockError(str(error)) from error


def _module(name: str) -> Any:  # noqa: ANN401
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def _quantizer(how: Mapping[str, Any], place: str) -> Any:  # noqa: ANN401
    module, _, name = place.partition(":")
    home = part_or_none(module)
    if home is None:
        raise StockError(f"this executorch has no {name}")
    chosen = getattr(home, name)().set_global(_config(home, how["mode"], how))
    for words, put in (
        ("modules", chosen.set_module_name),
        ("operators", chosen.set_operator_type),
    ):
        for text in how.get(words) or ():
            name, mode = parse_assignment(text, "MODE")
            put(name if words == "modules" else _packet(name), _config(home, mode, how))
    return chosen


def _config(home: Any, mode: str, how: Mapping[str, Any]) -> Any:  # noqa: ANN401
    if mode not in _MODES:
        there = ", ".join(_MODES)
        raise StockError(f"unknown mode {mode!r} of the stock quantizer; available: {there}")
    if mode == "none":
        return None
    return home.get_symmetric_quantization_config(
        is_per_channel=not how.get("per_tensor"), is_dynamic=mode == "dynamic"
    )


def _packet(name: str) -> Any:  # noqa: ANN401
    home, _, short = name.rpartition(".")
    found = getattr(getattr(torch.ops, home or "aten"), short, None)
    if found is None:
        raise StockError(f"no operator {name!r}; expected a name as aten.linear")
    return found


def _calls(path: str, program: Any, method: str) -> list[tuple[Any, ...]]:  # noqa: ANN401
    """Return the arguments of each call to calibrate with."""
    if not path:
        given: Any = program.example_inputs
        if not given or given[1] or not given[0]:
            raise StockError("the program has no example inputs that can be calibrated with")
        return [tuple(given[0])]
    if ".py:" in path or Path(path).is_dir():
        raise StockError(f"{path}: expected a .pt file, which this toolchain calibrates with")
    try:
        found: Any = torch.load(path, weights_only=True)
    except Exception as error:
        raise StockError(f"{path}: no calibration inputs: {error}") from error
    kind = type(found).__name__
    if kind == "dict":
        found = found.get(method)
        kind = type(found).__name__
    calls: Any = [found] if kind in ("tuple", "Tensor") else found
    if type(calls).__name__ != "list" or not calls:
        raise StockError(f"{path}: expected a list of the arguments of each call of {method}")
    return [(one,) if isinstance(one, torch.Tensor) else tuple(one) for one in calls]


def _shapes(program: Any) -> Any:  # noqa: ANN401 - as torch.export takes them
    """Return the dynamic sizes of the inputs, or None."""
    user = set(program.graph_signature.user_inputs)
    known: dict[str, Any] = {}
    found: list[Any] = []
    for node in program.graph.nodes:
        if node.op != "placeholder" or node.name not in user:
            continue
        value = node.meta.get("val")
        sizes = enumerate(value.shape) if isinstance(value, torch.Tensor) else ()
        dims = {at: _dim(program, s, known) for at, s in sizes if isinstance(s, torch.SymInt)}
        found.append(dims or None)
    if not any(found):
        return None
    return _pytree.tree_unflatten(found, program.call_spec.in_spec)[0]


def _dim(program: Any, size: Any, known: dict[str, Any]) -> Any:  # noqa: ANN401
    symbol = size.node.expr
    if not symbol.is_Symbol:
        return Dim.AUTO  # derived from other sizes
    name = str(symbol)
    if name not in known:
        bounds = program.range_constraints.get(symbol)
        low, high = (None, None) if bounds is None else (bounds.lower, bounds.upper)
        known[name] = Dim(name, min=_whole(low), max=_whole(high))
    return known[name]


def _whole(bound: Any) -> Any:  # noqa: ANN401
    return int(bound) if bound is not None and bound.is_integer else None
