"""Writes the payloads beside it: python recipe.py BACKEND NETWORK [OPTION], in an environment with the stock package.

Vulkan, XNNPACK, native and Core ML need executorch 1.5.1 alone, OpenVINO openvino 2025.4.1 (and nncf 3.1.0 for int8), TOSA tosa-tools 2026.5.0, Ethos-U ethos-u-vela 5.1.0 as well, MPS the folder backends/apple of
release 1.4.1 as MPS_SOURCES. Each NAME.pte has a NAME.pt: [inputs, outputs of the module, or of the quantized
program]. Networks are in nets.py.
"""

from __future__ import annotations

import copy
import os
import re
import sys
import zipfile
from pathlib import Path

import torch
from executorch.exir import EdgeCompileConfig, to_edge_transform_and_lower
from nets import network

_RECORDED = (
    "m1",
    "m2",
    "steps",
    "sharing",
    "strided",
    "slopes",
    "twice",
    "copies",
    "moved",
    "several",
    "integers",
    "heads",
    "normed",
    "grouped",
    "excite",
    "residual",
    "summed",
    "spectral",
)
HERE = Path(__file__).resolve().parent


def partitioner(backend: str, option: str):
    if backend == "vulkan":
        from executorch.backends.vulkan.partitioner.vulkan_partitioner import VulkanPartitioner

        named = {"fp16": "force_fp16", "alias": "alias_buffer_mutations"}
        return VulkanPartitioner({named[option]: True} if option in named else {})
    if backend == "xnnpack":
        from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner

        return XnnpackPartitioner()
    if backend == "native":
        from executorch.backends.native.partitioner import NativePartitioner

        return NativePartitioner(external_constants_tag=None)
    if backend == "openvino":
        from executorch.backends.openvino.partitioner import OpenvinoPartitioner
        from executorch.exir.backend.compile_spec_schema import CompileSpec

        return OpenvinoPartitioner([CompileSpec("device", b"CPU")])
    if backend == "mps":
        import executorch.backends.apple as apple

        apple.__path__.append(os.environ["MPS_SOURCES"])
        from executorch.backends.apple.mps.partition.mps_partitioner import MPSPartitioner
        from executorch.exir.backend.compile_spec_schema import CompileSpec

        return MPSPartitioner([CompileSpec("use_fp16", bytes([option == "fp16"]))])
    if backend == "coreml":
        return coreml_partitioner(option)
    if backend == "ethosu":
        from executorch.backends.arm.ethosu import EthosUCompileSpec, EthosUPartitioner

        return EthosUPartitioner(EthosUCompileSpec("ethos-u55-128"))
    if backend == "vgf":
        from executorch.backends.arm.vgf import VgfCompileSpec, VgfPartitioner

        return VgfPartitioner(VgfCompileSpec())
    from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec
    from executorch.backends.arm.tosa.partitioner import TOSAPartitioner

    kind = "INT" if option in ("int8", "int16") else "FP"
    return TOSAPartitioner(
        TosaCompileSpec(f"TOSA-1.0+{kind}{'+int16' if option == 'int16' else ''}")
    )


def coreml_partitioner(option: str):
    """The option is a deployment target, fp16, int8 (float16 between its integers), or several."""
    import coremltools as ct
    from executorch.backends.apple.coreml.compiler import CoreMLBackend
    from executorch.backends.apple.coreml.partition import CoreMLPartitioner

    words = option.split("-")
    half = bool({"fp16", "int8", "palette"}.intersection(words))
    target = next((word for word in words if word.startswith("iOS")), "iOS17")
    specs = CoreMLBackend.generate_compile_specs(
        compute_precision=ct.precision.FLOAT16 if half else ct.precision.FLOAT32,
        minimum_deployment_target=getattr(ct.target, target),
    )
    return CoreMLPartitioner(compile_specs=specs)


def quantizer(backend: str, option: str):
    if backend == "coreml":
        import coremltools.optimize.torch.quantization as q
        from executorch.backends.apple.coreml.quantizer import CoreMLQuantizer

        return CoreMLQuantizer(
            q.LinearQuantizerConfig(
                global_config=q.ModuleLinearQuantizerConfig(
                    quantization_scheme="symmetric",
                    activation_dtype=torch.quint8,
                    weight_dtype=torch.qint8,
                    weight_per_channel=True,
                )
            )
        )
    if backend == "vulkan":
        from executorch.backends.vulkan.quantizer.vulkan_quantizer import (
            VulkanQuantizer,
            get_symmetric_quantization_config,
        )

        config = get_symmetric_quantization_config(
            is_dynamic=option == "dynamic8", weight_bits=4 if option == "weight4" else 8
        )
        return VulkanQuantizer().set_global(config)
    from executorch.backends.arm.quantizer import (
        TOSAQuantizer,
        get_symmetric_a16w8_quantization_config,
        get_symmetric_quantization_config,
    )
    from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec

    if backend == "ethosu":
        from executorch.backends.arm.ethosu import EthosUCompileSpec
        from executorch.backends.arm.quantizer import EthosUQuantizer

        config = get_symmetric_quantization_config()
        return EthosUQuantizer(EthosUCompileSpec("ethos-u55-128")).set_global(config)
    if backend == "vgf":
        from executorch.backends.arm.quantizer import VgfQuantizer
        from executorch.backends.arm.vgf import VgfCompileSpec

        config = get_symmetric_quantization_config()
        return VgfQuantizer(VgfCompileSpec()).set_global(config)
    spec = TosaCompileSpec("TOSA-1.0+INT" + ("+int16" if option == "int16" else ""))
    make = (
        get_symmetric_a16w8_quantization_config
        if option == "int16"
        else get_symmetric_quantization_config
    )
    return TOSAQuantizer(spec).set_global(make())


def exported(backend: str, name: str, option: str):
    module, inputs = network(name)
    shapes = None
    if name in ("dynamic", "sizes"):
        shapes = ({0: torch.export.Dim("rows", min=2, max=9)},)
    program = torch.export.export(module, inputs, dynamic_shapes=shapes, strict=True)
    if option.startswith("torchao"):
        from torchao.quantization.granularity import PerGroup
        from torchao.quantization.quant_api import (
            Int8DynamicActivationIntxWeightConfig,
            IntxWeightOnlyConfig,
            quantize_,
        )

        config = (
            Int8DynamicActivationIntxWeightConfig(
                weight_dtype=torch.int4, weight_granularity=PerGroup(32)
            )
            if option == "torchao8da4w"
            else IntxWeightOnlyConfig(weight_dtype=torch.int4, granularity=PerGroup(32))
        )
        quantize_(module, config, filter_fn=lambda one, _: isinstance(one, torch.nn.Linear))
        program = torch.export.export(module, inputs, strict=True)
    elif backend == "openvino" and option == "int8":
        from executorch.backends.openvino.quantizer import quantize_model
        from executorch.backends.openvino.quantizer.quantizer import QuantizationMode

        made = quantize_model(
            program.module(check_guards=False),
            torch.utils.data.DataLoader([inputs[0]], batch_size=None),
            mode=QuantizationMode.INT8_SYM,
            subset_size=1,
            fast_bias_correction=None,
        )
        program = torch.export.export(made, inputs)
    elif option in ("int8", "int16", "weight4", "weight8", "dynamic8"):
        from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

        prepared = prepare_pt2e(program.module(check_guards=False), quantizer(backend, option))
        prepared(*inputs)
        program = torch.export.export(convert_pt2e(prepared), inputs, strict=True)
    with torch.no_grad():  # of a copy, whose buffers it changes
        expected = copy.deepcopy(program).module(check_guards=False)(*inputs)
    several = isinstance(expected, (tuple, list))
    return program, list(inputs), list(expected) if several else [expected]


def scrubbed(path: Path) -> None:
    """Make the file names in stack traces relative to tests/data and to site-packages."""
    with zipfile.ZipFile(path) as file:
        members = {name: file.read(name) for name in file.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in members.items():
            data = data.replace(f"{HERE.parent}/".encode(), b"")
            file.writestr(name, re.sub(rb"/[-\w./]*/site-\w+/", b"", data))


def write(backend: str, name: str, option: str) -> None:
    """Write a payload, its inputs and what the module makes of them."""
    program, inputs, expected = exported(backend, name, option)
    home = HERE / backend if backend == "openvino" else HERE  # others need no package to run
    target = home / "_".join(filter(None, (backend, name, option)))
    lowered = to_edge_transform_and_lower(
        program,
        partitioner=[partitioner(backend, option)],
        compile_config=EdgeCompileConfig(_check_ir_validity=False),
        generate_etrecord=True,
    )
    built = lowered.to_executorch()
    built.save(str(target.with_suffix(".pte")))
    if name in _RECORDED:
        built.get_etrecord().save(str(target.with_suffix(".etrecord")))
        scrubbed(target.with_suffix(".etrecord"))
    torch.save([inputs, expected], target.with_suffix(".pt"))


if __name__ == "__main__":
    write(*(*sys.argv[1:], "")[:3])
