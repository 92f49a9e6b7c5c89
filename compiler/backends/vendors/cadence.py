"""The flow of Cadence: its quantizer, its passes and its planning of memories."""

from __future__ import annotations

import importlib
import typing
from collections.abc import Mapping, Sequence
from typing import Any

import torch
import typing_extensions

from compiler.backends.vendors.cadence_channels import channels_kept
from compiler.backends.vendors.options import Creator, OptionError, VendorOptions
from compiler.backends.vendors.package import backend_part
from compiler.interface.package_forms import give_strides

_KEPT: list[Any] = []  # what defines an operator defines it for as long as it lives
_RMS_NORM = (
    "rms_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, float? eps=None)"
    " -> Tensor"
)


def _compiler() -> Any:  # noqa: ANN401 - a module of the package
    """Return the compiler of the package, with what release 1.5 lacks."""
    settable: Any = typing
    settable.override = getattr(typing, "override", typing_extensions.override)
    if not hasattr(torch.ops.cadence, "rms_norm"):  # it has an implementation without a schema
        defined: Any = torch.library.Library("cadence", "FRAGMENT")
        defined.define(_RMS_NORM)
        _KEPT.append(defined)
    home = backend_part("cadence.aot.compiler")
    backend_part("cadence.aot.ref_implementations")
    return home


class CadenceSteps:
    """The steps of its quantizer; fusion comes later, over the program exported again."""

    def __init__(self, quantizer: Any) -> None:  # noqa: ANN401
        """Store a quantizer."""
        self._quantizer = quantizer

    def annotate(self, model: Any) -> Any:  # noqa: ANN401 - a graph module
        """Annotate a graph."""
        return self._quantizer.annotate(model)

    def validate(self, model: Any) -> None:  # noqa: ANN401
        """Check a graph."""
        self._quantizer.validate(model)

    def quantize(self, captured: Any, calls: Sequence[tuple[Any, ...]]) -> Any:  # noqa: ANN401
        """Return a quantized graph of a captured one, calibrated by calls."""
        home = _compiler()
        decompositions: Any = importlib.import_module("torch._inductor.decomposition")
        steps: Any = importlib.import_module("torchao.quantization.pt2e.quantize_pt2e")
        table = torch.export.default_decompositions()
        whole = self._quantizer.get_ops_to_preserve_from_decomposition()
        own: Any = torch.ops.aten
        decompositions.remove_decompositions(table, [*whole, own._safe_softmax.default])
        with torch.no_grad():
            program: Any = torch.export.export(captured, calls[0], strict=True)
            program = program.run_decompositions(table)
            give_strides(program.graph_module)  # its fused pooling has no default
            prepared = steps.prepare_pt2e(program.module(check_guards=False), self._quantizer)
            for given in calls:
                prepared(*given)
        return home.convert_pt2(prepared)

    def fused(self, program: Any) -> Any:  # noqa: ANN401 - an exported program
        """Return a program whose quantized operators are those of the vendor."""
        return _compiler().apply_pre_edge_transform_passes(program, self._quantizer)


class CadenceFlow:
    """Compiles whole programs to operators of Cadence.

    Attributes:
        space: namespace of its operators
    """

    space = "cadence"

    def __init__(self, home: Any, mode: Any, planning: Mapping[str, Any]) -> None:  # noqa: ANN401
        """Store settings.

        Args:
            home: the compiler of the package
            mode: of its passes
            planning: settings of the planning of memories
        """
        self._home = home
        self._mode = mode
        self._planning = dict(planning)

    def edge(self, programs: Mapping[str, Any], constants: Mapping[str, Any], fused: Any) -> Any:  # noqa: ANN401
        """Return edge programs of exported ones, fused by the quantizer they were quantized by."""
        home = self._home
        given = dict(programs)
        if isinstance(fused, CadenceSteps):
            given = {name: fused.fused(program) for name, program in given.items()}
        given = {name: home.apply_torch_ops_passes(program) for name, program in given.items()}
        config = home.EdgeCompileConfig(
            _skip_dim_order=True,
            _core_aten_ops_exception_list=home.TO_EDGE_OP_EXCEPTION_LIST,
            preserve_ops=home.TO_EDGE_PRESERVE_OPS,
        )
        more = {"constant_methods": dict(constants)} if constants else {}
        return home.to_edge(given, compile_config=config, generate_etrecord=True, **more)

    def transform(self, edge: Any) -> Any:  # noqa: ANN401 - edge programs of the package
        """Return edge programs after its passes."""
        with channels_kept():
            return self._home.apply_exir_ops_passes(self._mode, edge)

    def emission(self) -> dict[str, Any]:
        """Return settings of the emission, with its planning of memories."""
        home = self._home
        return {
            "memory_planning_pass": home.CadenceMemoryPlanning(mode=self._mode, **self._planning),
            "to_out_var_pass": home.ToOutVarPass(),
            "extract_delegate_segments": False,
            "sym_shape_eval_pass": home.ConstraintBasedSymShapeEvalPass(),
        }


def flow(options: VendorOptions) -> Creator:
    """Return the factory of the flow of Cadence."""
    home = _compiler()
    modes = {one.value: one for one in home.CompileMode}
    mode = options.member("mode", modes, home.CompileMode.DEFAULT)
    sizes = options.words("memory_sizes")
    names = options.words("memory_names")
    if not all(one.isdecimal() and int(one) for one in sizes):
        raise OptionError("cadence: memory_sizes are bytes of each memory, as 65536,1048576")
    if names and len(names) != len(sizes):
        raise OptionError("cadence: memory_names has one name for each of memory_sizes")
    config = home.get_default_memory_config()
    if sizes:
        config = home.MemoryConfig([*map(int, sizes)], memory_names=names or None)
    inputs = options.flag("alloc_graph_input", True)
    outputs = options.flag("alloc_graph_output", True)
    planners = home.CadenceMemoryPlanning.get_mem_algos(config, mode, inputs, outputs, None)
    chosen = options.text("mem_algo", "0", [str(at) for at in range(len(planners))])
    planning = {
        "memory_config": config,
        "mem_algo": int(chosen),
        "alloc_graph_input": inputs,
        "alloc_graph_output": outputs,
    }
    return lambda: CadenceFlow(home, mode, planning)


_QUANTIZERS: Mapping[str, str] = {
    "default": "CadenceDefaultQuantizer",
    "layer-norm": "CadenceWithLayerNormQuantizer",
    "softmax": "CadenceWithSoftmaxQuantizer",
    "conv-relu": "CadenceFusedConvReluQuantizer",
    "w8a32": "CadenceW8A32MixedQuantizer",
    "a16-linear": "CadenceWith16BitLinearActivationsQuantizer",
    "a16-conv": "CadenceWith16BitConvActivationsQuantizer",
    "a16-matmul": "CadenceWith16BitMatmulActivationsQuantizer",
}


def quantizer(options: VendorOptions) -> Creator:
    """Return the factory of the quantizer of Cadence."""
    _compiler()
    home = backend_part("cadence.aot.quantizer.quantizer")
    there = {word: name for word, name in _QUANTIZERS.items() if hasattr(home, name)}
    name = options.member("mode", there, _QUANTIZERS["default"])
    return lambda: CadenceSteps(getattr(home, name)())
