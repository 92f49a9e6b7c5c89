"""TOSA, Ethos-U, VGF and Cortex-M, of Arm."""

from __future__ import annotations

import configparser
import contextlib
import importlib
import io
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from compiler.backends.vendors.options import Creator, OptionError, VendorOptions
from compiler.backends.vendors.package import backend_part
from compiler.backends.vendors.vgf_flags import converter_refuses
from compiler.innermost import ToolExitError, telling_exits

_CONFIGS: Mapping[str, str] = {
    "a8w8": "get_symmetric_quantization_config",
    "a16w8": "get_symmetric_a16w8_quantization_config",
    "a8w4": "get_symmetric_a8w4_quantization_config",
}
_CONFIG = "Arm/vela.ini"
_READ_BY_VELA = ("system_config", "memory_mode", "extra_flags")
_KINDS = ("System_Config", "Memory_Mode")
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
    config = options.text("config_ini", _CONFIG)
    sections = config_sections(config)
    found = {
        "system_config": options.text("system_config", None, sections["System_Config"]),
        "memory_mode": options.text("memory_mode", None, sections["Memory_Mode"]),
        "extra_flags": options.words("extra_flags") or None,
        "config_ini": config,
    }
    target = options.text("target", "ethos-u55-128", _accelerators())

    def create() -> Any:  # noqa: ANN401
        made = home.EthosUCompileSpec(target, **found)
        if any(found[name] for name in _READ_BY_VELA) or config != _CONFIG:
            check_vela(made.compiler_flags)
        return made

    return create


def check_vela(flags: Sequence[str]) -> None:
    """Let Vela read its options: it does so before it opens the network.

    Raises: what Vela raises for them, ToolExitError if it ends with them
    """
    vela = importlib.import_module("ethosu.vela.vela")
    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.redirect_stdout(io.StringIO()),
        telling_exits(),
    ):
        words = [*flags, f"--output-dir={folder}", str(Path(folder, "missing.tosa"))]
        with contextlib.suppress(FileNotFoundError):
            vela.main(" ".join(words).split(" "))  # as the stock package does
            raise ToolExitError("with these extra_flags Vela compiles nothing")


def _accelerators() -> tuple[str, ...]:
    """Return the accelerators of Vela's enumeration."""
    home = importlib.import_module("ethosu.vela.architecture_features")
    return tuple(one.value for one in home.Accelerator if one.value.startswith("ethos-"))


def config_sections(config: str) -> Mapping[str, tuple[str, ...]]:
    """Return the names that a configuration of Vela has, by their kind.

    Args:
        config: a file, or one of Vela's own as ``Arm/vela.ini``

    Raises: OptionError if there is no such file, or it cannot be read
    """
    # a namespace package, which has no file
    own = [Path(one, "config_files") for one in importlib.import_module("ethosu").__path__]
    places = [Path(config), *(folder / config for folder in own)]
    path = next((one for one in places if one.is_file()), None)
    if path is None:
        there = sorted(
            one.relative_to(folder).as_posix() for folder in own for one in folder.rglob("*.ini")
        )
        listed = ", ".join(there) or "none"
        raise OptionError(f"ethos-u: config_ini {config!r} is not a file; available: {listed}")
    parser = configparser.ConfigParser()
    try:
        parser.read_string(path.read_text("utf-8"))
    except (configparser.Error, UnicodeDecodeError) as error:
        words = " ".join(str(error).split())
        raise OptionError(f"ethos-u: config_ini {config!r} cannot be read: {words}") from error
    found: dict[str, list[str]] = {kind: [] for kind in _KINDS}
    for section in parser.sections():
        kind, _, name = section.partition(".")
        if kind in found:
            found[kind].append(name)
    return {kind: tuple(names) for kind, names in found.items()}


def vgf(options: VendorOptions) -> Creator:
    """Return the factory of the partitioner of VGF."""
    home = backend_part("arm.vgf")
    compile_spec = _vgf_spec(options)
    return lambda: home.VgfPartitioner(compile_spec())


def _vgf_spec(options: VendorOptions) -> Creator:
    home = backend_part("arm.vgf")
    words = _specification(options, _MAX_TOSA)
    flags = options.words("compiler_flags")
    if flags and (why := converter_refuses(flags)) and not converter_refuses(()):
        raise OptionError(f"vgf: compiler_flags cannot be {','.join(flags)!r}: {why}")
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
