"""TOSA, Ethos-U, VGF and Cortex-M, of Arm."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from compiler.backends.vendors.options import Creator, VendorOptions
from compiler.backends.vendors.package import backend_part

_CONFIGS: Mapping[str, str] = {
    "a8w8": "get_symmetric_quantization_config",
    "a16w8": "get_symmetric_a16w8_quantization_config",
    "a8w4": "get_symmetric_a8w4_quantization_config",
}
_MAX_TOSA = "TOSA-1.0+FP+INT+int4+int16"


def tosa(options: VendorOptions) -> Creator:
    """Return the factory of the partitioner of TOSA."""
    home = backend_part("arm.tosa.partitioner")
    compile_spec = _tosa_spec(options)
    return lambda: home.TOSAPartitioner(compile_spec())


def _tosa_spec(options: VendorOptions) -> Creator:
    made = backend_part("arm.tosa.compile_spec").TosaCompileSpec
    words = _specification(options, "TOSA-1.0+FP")
    return lambda: made(words)


def _specification(options: VendorOptions, default: str) -> str:
    """Return a specification of TOSA in words: a version, profiles and their extensions."""
    home = backend_part("arm.tosa.specification").TosaSpecification
    listed = home.all_versions_and_profiles()
    extensions = {
        name: None
        for one in listed
        for profile in one.profiles
        for name in one.valid_extensions[profile]
    }
    more = f"; extensions, by version and profile: {', '.join(f'+{one}' for one in extensions)}"
    return options.parsed("spec", default, home.create_from_string, map(str, listed), more)


def ethos_u(options: VendorOptions) -> Creator:
    """Return the factory of the partitioner of Ethos-U."""
    home = backend_part("arm.ethosu")
    compile_spec = _ethos_u_spec(options)
    return lambda: home.EthosUPartitioner(compile_spec())


def _ethos_u_spec(options: VendorOptions) -> Creator:
    home = backend_part("arm.ethosu")
    found = {
        "system_config": options.text("system_config"),
        "memory_mode": options.text("memory_mode", None, _memory_modes()),
        "extra_flags": options.words("extra_flags") or None,
        "config_ini": options.text("config_ini", "Arm/vela.ini"),
    }
    target = options.text("target", "ethos-u55-128", _accelerators())
    return lambda: home.EthosUCompileSpec(target, **found)


def _accelerators() -> tuple[str, ...]:
    """Return the accelerators of Vela's enumeration."""
    home = importlib.import_module("ethosu.vela.architecture_features")
    return tuple(one.value for one in home.Accelerator if one.value.startswith("ethos-"))


def _memory_modes() -> tuple[str, ...]:
    """Return the memory modes of Vela's own configuration."""
    folder = Path(str(importlib.import_module("ethosu").__file__)).parent
    text = next((path.read_text("utf-8") for path in folder.rglob("Arm/vela.ini")), "")
    mark = "[Memory_Mode."
    return tuple(
        line[len(mark) : line.index("]")] for line in text.splitlines() if line.startswith(mark)
    )


def vgf(options: VendorOptions) -> Creator:
    """Return the factory of the partitioner of VGF."""
    home = backend_part("arm.vgf")
    compile_spec = _vgf_spec(options)
    return lambda: home.VgfPartitioner(compile_spec())


def _vgf_spec(options: VendorOptions) -> Creator:
    home = backend_part("arm.vgf")
    words = _specification(options, _MAX_TOSA)
    flags = options.words("compiler_flags")
    return lambda: home.VgfCompileSpec(words, flags)


def tosa_quantizer(options: VendorOptions) -> Creator:
    """Return the factory of the quantizer of TOSA."""
    made = backend_part("arm.tosa.compile_spec").TosaCompileSpec
    words = _specification(options, "TOSA-1.0+INT")
    return _quantizing("TOSAQuantizer", lambda: made(words), options)


def ethos_u_quantizer(options: VendorOptions) -> Creator:
    """Return the factory of the quantizer of Ethos-U."""
    return _quantizing("EthosUQuantizer", _ethos_u_spec(options), options)


def vgf_quantizer(options: VendorOptions) -> Creator:
    """Return the factory of the quantizer of VGF."""
    return _quantizing("VgfQuantizer", _vgf_spec(options), options)


def _quantizing(name: str, compile_spec: Creator, options: VendorOptions) -> Creator:
    home = backend_part("arm.quantizer")
    make = getattr(home, _CONFIGS[options.text("mode", "a8w8", _CONFIGS)])
    per_channel = options.flag("per_channel", True)
    return lambda: getattr(home, name)(compile_spec()).set_global(
        make(is_per_channel=per_channel, is_qat=False)
    )


def cortex_m_quantizer(options: VendorOptions) -> Creator:
    """Return the factory of the quantizer of Cortex-M."""
    # The package of its passes comes first: the quantizer's own import would be circular.
    backend_part("cortex_m.passes.cortex_m_pass_manager")
    home = backend_part("cortex_m.quantizer.quantizer")
    configs: Any = backend_part("cortex_m.quantizer.quantization_configs")
    kinds = {"int8": configs.INT8_PER_TENSOR_CONFIG}
    wide = getattr(configs, "INT16_PER_TENSOR_CONFIG", None)
    kinds.update({"int16": wide} if wide is not None else {})
    chosen = options.member("mode", kinds, configs.INT8_PER_TENSOR_CONFIG)
    return lambda: home.CortexMQuantizer(chosen)


def operators() -> list[tuple[str, str]]:
    """Return the operators of the lists of the operator support, by profile."""
    home = backend_part("arm.operator_support.tosa_profile_supported_op_lists")
    found: dict[str, list[str]] = {}
    for name in ("FP", "INT"):
        for op in getattr(home, f"TOSA_PRO_{name}_SupportList"):
            found.setdefault(str(getattr(op, "__name__", op)), []).append(name)
    return [(name, " and ".join(profiles)) for name, profiles in found.items()]
