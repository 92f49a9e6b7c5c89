"""Core ML and MPS, of Apple."""

from __future__ import annotations

import importlib
from typing import Any

from compiler.backends.vendors.options import Creator, VendorOptions
from compiler.backends.vendors.package import backend_part, spec


def partitioner(options: VendorOptions) -> Creator:
    """Return the factory of the partitioner of Core ML."""
    tools = importlib.import_module("coremltools")
    home = backend_part("apple.coreml.partition")
    backend = backend_part("apple.coreml.compiler").CoreMLBackend
    target = options.member("target", tools.target)
    precision = options.member("precision", tools.precision, tools.precision.FLOAT16)
    unit = options.member("compute_unit", tools.ComputeUnit, tools.ComputeUnit.ALL)
    kind = options.member("model_type", backend.MODEL_TYPE, backend.MODEL_TYPE.MODEL)
    skip = options.words("skip_ops")
    whole = options.flag("lower_full_graph")
    state = options.flag("take_over_mutable_buffer", True)
    constants = options.flag("take_over_constant_data", True)
    return lambda: home.CoreMLPartitioner(
        skip_ops_for_coreml_delegation=skip,
        compile_specs=backend.generate_compile_specs(
            compute_unit=unit,
            minimum_deployment_target=target,
            compute_precision=precision,
            model_type=kind,
        ),
        take_over_mutable_buffer=state,
        lower_full_graph=whole,
        take_over_constant_data=constants,
    )


def quantizer(options: VendorOptions) -> Creator:
    """Return the factory of the quantizer of Core ML."""
    home = backend_part("apple.coreml.quantizer")
    tools = importlib.import_module("coremltools.optimize.torch.quantization")
    torch = importlib.import_module("torch")
    mode = options.text("mode", "static", ("static", "weight-only"))
    scheme = options.member("scheme", tools.QuantizationScheme, tools.QuantizationScheme.symmetric)
    per_channel = options.flag("per_channel", True)
    settings: dict[str, Any] = {
        "quantization_scheme": scheme,
        "activation_dtype": torch.float32 if mode == "weight-only" else torch.quint8,
        "weight_dtype": torch.qint8,
        "weight_per_channel": per_channel,
    }
    return lambda: home.CoreMLQuantizer(
        tools.LinearQuantizerConfig.from_dict({"global_config": settings})
    )


def operators() -> list[tuple[str, str]]:
    """Return the operators that the torch front end has a conversion for."""
    home = importlib.import_module("coremltools.converters.mil.frontend.torch.torch_op_registry")
    importlib.import_module("coremltools.converters.mil.frontend.torch.ops")
    table = home._TORCH_OPS_REGISTRY.name_to_func_mapping
    return [(str(name), "any") for name in table]


def mps(options: VendorOptions) -> Creator:
    """Return the factory of the partitioner of MPS."""
    home = backend_part("apple.mps.partition.mps_partitioner")
    half = options.flag("use_fp16")
    return lambda: home.MPSPartitioner([spec("use_fp16", bytes([half]))])
