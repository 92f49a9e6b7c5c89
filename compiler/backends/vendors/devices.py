"""Vendors whose compilers come with an SDK, and whose payloads run on their hardware only."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from compiler.backends.vendors.options import Creator, VendorOptions
from compiler.backends.vendors.package import backend_part, spec


def qnn(options: VendorOptions) -> Creator:
    """Return the factory of the partitioner of QNN."""
    home = backend_part("qualcomm.partition.qnn_partitioner")
    schema = backend_part("qualcomm.serialization.qc_schema")
    utils = backend_part("qualcomm.utils.utils")
    soc = options.member("soc", schema.QcomChipset, schema.QcomChipset.SM8650)
    kinds: Mapping[str, Any] = {
        name: getattr(utils, f"generate_{name}_compiler_spec") for name in ("htp", "gpu", "lpai")
    }
    backend = options.text("backend", "htp", kinds)
    half = options.flag("fp16", True)
    buffers = options.flag("skip_mutable_buffer")
    given = {
        name: options.flag(name)
        for name in ("debug", "online_prepare", "dump_intermediate_outputs", "shared_buffer")
    }
    given["profile_level"] = options.number("profile_level", 0)

    def create() -> Any:  # noqa: ANN401
        more = {"use_fp16": half} if backend == "htp" else {}
        made = utils.generate_qnn_executorch_compiler_spec(
            soc_model=soc, backend_options=kinds[backend](**more), **given
        )
        return home.QnnPartitioner(made, skip_mutable_buffer=buffers)

    return create


def qnn_quantizer(options: VendorOptions) -> Creator:
    """Return the factory of the quantizer of QNN."""
    home = backend_part("qualcomm.quantizer.quantizer")
    schema = backend_part("qualcomm.serialization.qc_schema")
    words = {one.name.removeprefix("use_"): one for one in home.QuantDtype}
    mode = options.member("mode", words, home.QuantDtype.use_8a8w)
    soc = options.member("soc", schema.QcomChipset, schema.QcomChipset.SM8650)

    def create() -> Any:  # noqa: ANN401
        made = home.QnnQuantizer(soc_model=soc)
        made.set_default_quant_config(mode)
        return made

    return create


def mediatek(options: VendorOptions) -> Creator:
    """Return the factory of the partitioner of MediaTek; other keys are flags of its compiler."""
    home = backend_part("mediatek.partitioner")
    platform: str = options.text("platform", "mt6989")
    more = options.rest()
    specs = [spec("platform-config", platform.encode())]
    specs += [spec(key, str(value).encode()) for key, value in more.items()]
    return lambda: home.NeuropilotPartitioner(specs)


def mediatek_quantizer(options: VendorOptions) -> Creator:
    """Return the factory of the quantizer of MediaTek."""
    home = backend_part("mediatek.quantizer")
    mode = options.member("mode", home.Precision, home.Precision.A8W8)

    def create() -> Any:  # noqa: ANN401
        made = home.NeuropilotQuantizer()
        made.setup_precision(mode)
        return made

    return create


def samsung(options: VendorOptions) -> Creator:
    """Return the factory of the partitioner of Samsung."""
    home = backend_part("samsung.partition.enn_partitioner")
    settings = backend_part("samsung.serialization.compile_options")
    chips = [name for name in settings.SamsungChipset.__members__ if not name.startswith("UNDEF")]
    chip: str = options.text("chipset", "E9955", chips)
    mode = options.member("perf_mode", settings.PerformanceMode)
    return lambda: home.EnnPartitioner([settings.gen_samsung_backend_compile_spec(chip, mode)])


def samsung_quantizer(options: VendorOptions) -> Creator:
    """Return the factory of the quantizer of Samsung."""
    home = backend_part("samsung.quantizer")
    mode = options.member("mode", home.Precision, home.Precision.A8W8)
    per_channel = options.flag("per_channel", True)

    def create() -> Any:  # noqa: ANN401
        made = home.EnnQuantizer()
        made.setup_quant_params(mode, per_channel)
        return made

    return create


def nxp(options: VendorOptions) -> Creator:
    """Return the factory of the partitioner of NXP."""
    home = backend_part("nxp.neutron_partitioner")
    target = backend_part("nxp.backend.neutron_target_spec").NeutronTargetSpec
    generate = backend_part("nxp.nxp_backend").generate_neutron_compile_spec
    config: str = options.text("config", "imxrt700")
    known = inspect.signature(generate).parameters
    flags = ("use_neutron_for_format_conversion", "fetch_constants_to_sram", "use_profiling")
    given: dict[str, Any] = {name: options.flag(name, known[name].default) for name in flags}
    given["extra_flags"] = options.text("extra_flags")
    given["operators_not_to_delegate"] = options.words("operators_not_to_delegate") or None
    return lambda: home.NeutronPartitioner(generate(config, **given), target(config))


def nxp_quantizer(options: VendorOptions) -> Creator:
    """Return the factory of the quantizer of NXP."""
    home = backend_part("nxp.quantizer.neutron_quantizer")
    target = backend_part("nxp.backend.neutron_target_spec").NeutronTargetSpec
    config: str = options.text("config", "imxrt700")
    return lambda: home.NeutronQuantizer(target(config))


def cuda(options: VendorOptions) -> Creator:
    """Return the factory of the partitioner of CUDA."""
    home = backend_part("cuda.cuda_partitioner")
    backend = backend_part("cuda.cuda_backend").CudaBackend
    device: str = options.text("device", "cuda:0")
    method: str = options.text("method", "forward")
    return lambda: home.CudaPartitioner(
        [
            backend.generate_method_name_compile_spec(method),
            spec("target_device", device.encode()),
        ]
    )


def metal(options: VendorOptions) -> Creator:
    """Return the factory of the partitioner of Metal."""
    home = backend_part("apple.metal.metal_partitioner")
    backend = backend_part("apple.metal.metal_backend").MetalBackend
    method: str = options.text("method", "forward")
    return lambda: home.MetalPartitioner([backend.generate_method_name_compile_spec(method)])


def mlx(options: VendorOptions) -> Creator:
    """Return the factory of the partitioner of MLX, which has no options."""
    del options
    home = backend_part("mlx.partitioner")
    return lambda: home.MLXPartitioner()


def coreai(options: VendorOptions) -> Creator:
    """Return the factory of the partitioner of Core AI."""
    home = backend_part("apple.coreai.partition.partitioner")
    given = {
        "uses_sidecar": options.flag("uses_sidecar"),
        "min_deployment_version": options.text("target"),
        "take_over_constant_data": options.flag("take_over_constant_data", True),
        "take_over_mutable_buffer": options.flag("take_over_mutable_buffer", True),
    }
    return lambda: home.CoreAIPartitioner(**given)
