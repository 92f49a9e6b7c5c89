"""Quantization of an exported program in one call: prepare, calibrate, convert, export."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import torch
from torch.export import Dim, ExportedProgram
from torch.utils import _pytree as pytree

from compiler.errors import CompileError
from compiler.frontend import forget_traces
from compiler.innermost import innermost
from compiler.named import (
    UnknownNameError,
    create_named,
    create_of_vendor,
    object_in_file,
    parse_named,
)
from compiler.quantize.calibration import CalibrationError, Progress, calibrate, require_observed
from compiler.quantize.patterns import (
    expand_modules,
    opened_containers,
    with_owners,
    words_by_method,
)
from compiler.quantize.quiet_imports import import_quietly
from compiler.untyped import expression_of, largest, ranges_of
from schema.backends import DEFAULT, resolve
from schema.vendors.names import quantizer_names, quantizer_vendor

MODES = ("static", "dynamic", "weight-only")
NONE = "none"  # a part that is not quantized
OVERRIDES = (*MODES, NONE)


OVERRIDDEN_MODULES = "quantization.modules"  # path of the modules with words of their own


class QuantizeError(CompileError, ValueError):
    """A program cannot be quantized as requested."""


@dataclass(frozen=True)
class QuantizationModes:
    """How a program is quantized.

    Attributes:
        mode: ``static``, ``dynamic`` or ``weight-only``; ``none`` quantizes only what the other
            fields name
        per_tensor: weights have one scale instead of one for each channel
        modules: by path of a module, with ``*`` for any one name, another mode or ``none``
        operators: by name, as ``aten.linear``, another mode or ``none``
        nodes: by name in the exported program, likewise; takes precedence over the other two
    """

    mode: str = MODES[0]
    per_tensor: bool = False
    modules: Mapping[str, str] = field(default_factory=dict[str, str])
    operators: Mapping[str, str] = field(default_factory=dict[str, str])
    nodes: Mapping[str, str] = field(default_factory=dict[str, str])


class SupportsAnnotate(Protocol):
    """A PT2E quantizer, of torchao or of the user."""

    def annotate(self, model: torch.fx.GraphModule) -> torch.fx.GraphModule:
        """Mark which inputs and outputs of nodes are observed."""
        ...


def named_quantizer(text: str) -> SupportsAnnotate:
    """Return the quantizer named by ``file.py:NAME[:option=value…]``, or that of a vendor.

    NAME is a quantizer, its class, or a function that returns one. A vendor's is
    ``VENDOR[:MODE][:option=value…]``.

    Raises: UnknownNameError if it cannot be found or is none of these; errors of its file
    """
    vendor = quantizer_vendor(text)
    if vendor is not None:
        asked = parse_named(text, "mode")
        return create_of_vendor("create_quantizer_of", vendor, asked.options)
    asked = parse_named(text)
    if not asked.in_file:
        there = ", ".join(quantizer_names())
        raise UnknownNameError(f"unknown quantizer {text!r}; available: file.py:NAME, {there}")
    built: Any = create_named(asked, object_in_file(asked.name))
    if not hasattr(built, "annotate") and callable(built):
        built = built()
    if not callable(getattr(built, "annotate", None)):
        raise UnknownNameError(f"{asked.name} is not a quantizer: it has no method annotate")
    return built


def quantize_program(
    program: ExportedProgram,
    how: str | QuantizationModes | SupportsAnnotate = MODES[0],
    calibration: Sequence[tuple[Any, ...]] | None = None,
    progress: Progress | None = None,
) -> ExportedProgram:
    """Return an exported program quantized for XNNPACK; the given one is not changed.

    Args:
        program: as returned by ``torch.export.export``
        how: one mode for everything, detailed modes, or a PT2E quantizer
        calibration: arguments of calls; None for the example inputs of the program
        progress: called with the number of completed calibration calls and of all

    Raises:
        ModuleNotFoundError: torchao is not installed
        QuantizeError: a mode, module or operator is unknown, or shapes cannot be preserved
        CalibrationError: inputs are missing, one is rejected, or observers saw none
    """
    steps: Any = import_torchao("torchao.quantization.pt2e.quantize_pt2e")
    if isinstance(how, str):
        how = QuantizationModes(how)
    chosen = _quantizer(program, how) if isinstance(how, QuantizationModes) else how
    inputs = list(calibration) if calibration is not None else _examples(program)
    if not inputs:
        raise CalibrationError("no calibration inputs, and the program has no example inputs")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of torchao, about itself

        def calibrated(prepared: Any) -> Any:  # noqa: ANN401
            calibrate(prepared, inputs, progress, example=_example(program))
            require_observed(prepared)
            return prepared

        if hasattr(chosen, "quantize"):  # a vendor's own steps
            return export_again(program, _own_steps(chosen, program, inputs), inputs[0])
        prepare, convert = steps.prepare_pt2e, steps.convert_pt2e
        converted = quantize_graph(_captured(program), chosen, calibrated, prepare, convert)
        return export_again(program, converted, inputs[0])


def _captured(program: ExportedProgram) -> Any:  # noqa: ANN401 - a graph module
    """Return the graph without checks of inputs, which vendors' passes cannot read."""
    return program.module(check_guards=False)


def _own_steps(chosen: Any, program: ExportedProgram, inputs: Sequence[tuple[Any, ...]]) -> Any:  # noqa: ANN401
    prepare = getattr(chosen, "prepared", None)  # for operators that the vendor cannot read
    try:
        return chosen.quantize(_captured(prepare(program) if prepare else program), inputs)
    except Exception as error:
        raise QuantizeError(f"the vendor's quantizer failed: {innermost(error)}") from error


def quantize_graph(
    graph: Any,  # noqa: ANN401 - a graph module
    quantizer: SupportsAnnotate,
    observe: Callable[[Any], Any],
    prepare: Callable[[Any, Any], Any],
    convert: Callable[[Any], Any],
) -> Any:  # noqa: ANN401 - graph modules
    """Return a quantized graph: observers are inserted, see data, and become quantize nodes.

    Args:
        graph: an exported graph module
        quantizer: annotates it
        observe: calibrates or trains the prepared graph and returns it
        prepare: ``prepare_pt2e`` or ``prepare_qat_pt2e``
        convert: ``convert_pt2e``
    """
    return convert(observe(prepare(graph, quantizer)))


def import_torchao(name: str) -> Any:  # noqa: ANN401 - a module
    """Return a module of torchao.

    Raises: ModuleNotFoundError with what to install
    """
    try:
        return import_quietly(name)
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "quantization needs torchao, which is not installed: pip install torchao",
            name="torchao",
        ) from error


def _quantizer(program: ExportedProgram, how: QuantizationModes) -> Any:  # noqa: ANN401
    chosen, configs = resolve(DEFAULT.quantizer)(per_tensor=how.per_tensor)
    for word in (*how.modules.values(), *how.operators.values(), *how.nodes.values()):
        _check_mode(word, OVERRIDES)
    _check_mode(how.mode, OVERRIDES)
    chosen.set_global(configs[how.mode])
    paths, names = parts_of(program)
    # The innermost module decides, so the longest path comes first.
    modules = opened_containers(expand_modules(how.modules, with_owners(paths)), paths)
    for path, word in sorted(modules.items(), key=lambda item: -len(item[0])):
        if path not in paths:
            raise QuantizeError(f"{OVERRIDDEN_MODULES}.{path}: {_refusal(program, path, paths)}")
        chosen.set_module_name(path, configs[word])
    for name, word in how.operators.items():
        chosen.set_operator_type(_packet(name), configs[word])
    for name, word in how.nodes.items():
        if name not in names:
            raise QuantizeError(f"unknown node {name!r} of the program; available: {_some(names)}")
        chosen.set_node_name(name, configs[word])
    return chosen


def _refusal(program: ExportedProgram, path: str, paths: Sequence[str]) -> str:
    """Return why a module cannot have a word of its own."""
    if any(name.startswith(f"{path}.") for name in program.state_dict):
        return (
            "the module is never called, so that no operator belongs to it; if its weights are "
            "read elsewhere, name the operator or the node that reads them"
        )
    return f"unknown module of the program; available: {_some(paths)}"


def modes_by_method(
    programs: Mapping[str, ExportedProgram], how: QuantizationModes
) -> dict[str, QuantizationModes]:
    """Return the modes of each method: without those that name parts of other methods only."""
    parts = {method: parts_of(program) for method, program in programs.items()}
    owners = {method: with_owners(paths) for method, (paths, _) in parts.items()}
    modules = words_by_method(how.modules, owners)
    known = {name for _, names in parts.values() for name in names}

    def nodes(names: Sequence[str]) -> dict[str, str]:
        given = how.nodes.items()
        return {name: word for name, word in given if name in names or name not in known}

    return {
        method: replace(how, modules=modules[method], nodes=nodes(parts[method][1]))
        for method in programs
    }


def _check_mode(word: str, there: Sequence[str]) -> None:
    if word not in there:
        raise QuantizeError(f"unknown mode of quantization {word!r}; available: {', '.join(there)}")


def parts_of(program: ExportedProgram) -> tuple[list[str], list[str]]:
    """Return paths of modules and names of nodes that overrides may name."""
    nodes = [node.name for node in program.graph.nodes if node.op == "call_function"]
    return _module_paths(program), nodes


def _module_paths(program: ExportedProgram) -> list[str]:
    stacks = (node.meta.get("nn_module_stack", {}) for node in program.graph.nodes)
    paths = dict.fromkeys(path for stack in stacks for path, _ in stack.values() if path)
    return [path.removeprefix("L['self'].") for path in paths]


def _some(names: Sequence[str], most: int = 8) -> str:
    return ", ".join(names[:most]) + (" and more" if len(names) > most else "")


def _packet(name: str) -> Any:  # noqa: ANN401 - an operator
    home, _, short = name.rpartition(".")
    found = getattr(getattr(torch.ops, home or "aten"), short, None)
    if found is None:
        raise QuantizeError(f"unknown operator {name!r}; expected a name as aten.linear")
    return found


def _examples(program: ExportedProgram) -> list[tuple[Any, ...]]:
    found = program.example_inputs
    if found is None:
        return []
    args, kwargs = found
    if kwargs:
        raise QuantizeError("the program has keyword arguments, which calibration does not support")
    return [tuple(args)]


def _example(program: ExportedProgram) -> tuple[Any, ...] | None:
    """Return the positional example inputs, or None."""
    found = program.example_inputs
    return None if found is None or found[1] else tuple(found[0])


def export_again(
    program: ExportedProgram, converted: torch.nn.Module, inputs: tuple[Any, ...]
) -> ExportedProgram:
    """Return a changed module exported with the dynamic sizes of its program.

    Raises: QuantizeError if they cannot be preserved
    """
    shapes = _shapes(program)
    forget_traces()
    try:
        return torch.export.export(converted, inputs, dynamic_shapes=shapes)
    except Exception as error:
        if shapes is None:
            raise
        raise QuantizeError(f"dynamic sizes of the program cannot be preserved: {error}") from error


def _shapes(program: ExportedProgram) -> Any:  # noqa: ANN401 - as torch.export takes them
    """Return the dynamic sizes of the inputs, or None."""
    known: dict[str, Any] = {}
    user = set(program.graph_signature.user_inputs)
    nodes = [n for n in program.graph.nodes if n.op == "placeholder" and n.name in user]
    found: list[Any] = []
    for node in nodes:
        value = node.meta.get("val")
        sizes: Any = enumerate(value.shape) if isinstance(value, torch.Tensor) else ()
        dims = {at: _dim(program, s, known) for at, s in sizes if isinstance(s, torch.SymInt)}
        found.append(dims or None)
    if not any(found):
        return None
    spec = program.call_spec.in_spec
    assert spec is not None
    untyped: Any = pytree
    return untyped.tree_unflatten(found, spec)[0]


def _dim(program: ExportedProgram, size: torch.SymInt, known: dict[str, Any]) -> Any:  # noqa: ANN401
    """Return a size as a dimension: a symbol, a multiple of one with an offset, or bounds."""
    expression = expression_of(size)
    symbols = sorted(expression.free_symbols, key=str)
    if len(symbols) == 1:
        (symbol,) = symbols
        factor = expression.coeff(symbol)
        offset = expression - factor * symbol
        if factor.is_integer and offset.is_integer and factor.is_number and offset.is_number:
            found = _symbol(program, symbol, known)
            found = found if factor == 1 else int(factor) * found
            return found if offset == 0 else found + int(offset)
    auto: Any = Dim.AUTO
    return auto(max=largest(expression, ranges_of(program)))  # derived from other sizes


def _symbol(program: ExportedProgram, symbol: Any, known: dict[str, Any]) -> Any:  # noqa: ANN401
    name = str(symbol)
    if name not in known:
        bounds = ranges_of(program).get(symbol)
        least, most = (None, None) if bounds is None else _ends(bounds)
        known[name] = Dim(name, min=least, max=most)
    return known[name]


def _ends(bounds: Any) -> tuple[int | None, int | None]:  # noqa: ANN401 - a range of torch
    """Return the ends of a range, None for one that is not an integer."""
    low, high = (int(end) if end.is_integer else None for end in (bounds.lower, bounds.upper))
    return low, high
