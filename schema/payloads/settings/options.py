"""Vendor options stored as flatbuffers in compile specs.

Source: backends/qualcomm/serialization/qc_compiler_spec.fbs,
backends/samsung/serialization/compile_options_def.fbs
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from schema.errors import FormatError
from schema.flatbuf.spec import Spec, tables
from schema.payloads.model import CompileSpecs
from schema.payloads.reading import PayloadReader

_MAX_BYTES = 1 << 20
_SOC = {
    0: "unknown", 30: "SM8350", 36: "SM8450", 39: "SA8295", 42: "SM8475", 43: "SM8550",
    45: "SXR1230P", 46: "SSG2115P", 52: "SA8255", 53: "SXR2230P", 57: "SM8650", 58: "SSG2125P",
    60: "SC8380XP", 69: "SM8750", 72: "SA8797", 75: "SXR2330P", 77: "QCS9100", 87: "SM8850",
    93: "QCM6490", 95: "SAR2230P", 96: "SW6100", 97: "SM8845",
}  # fmt: skip
_PERFORMANCE = (
    "default", "sustained high performance", "burst", "high performance", "power saver",
    "low power saver", "high power saver", "low balanced", "balanced",
)  # fmt: skip
# field -> names of its values, by position or by value
_NAMES: dict[str, Mapping[int, str]] = {
    "soc_model": _SOC,
    "htp_arch": {0: "none"} | {number: f"V{number}" for number in (68, 69, 73, 75, 79, 81)},
    "lpai_hardware_version": {0: "none", 6: "V6", 7: "V7"},
    "backend_type": dict(enumerate(("undefined", "GPU", "HTP", "DSP", "LPAI"))),
    "htp_performance_mode": dict(enumerate(_PERFORMANCE)),
    "gpu_performance_mode": dict(enumerate(("high", "normal", "low"))),
    "htp_precision": dict(enumerate(("quantized", "fp16"))),
    "gpu_precision": dict(enumerate(("fp32", "fp16", "hybrid", "user provided"))),
    "pd_session": dict(enumerate(("unsigned", "signed"))),
    "client_perf_type": dict(enumerate(("undefined", "real time", "non real time"))),
    "affinity": dict(enumerate(("undefined", "soft", "hard"))),
    "target_env": dict(enumerate(("x86", "arm", "adsp"))),
    "log_level": dict(enumerate(("off", "error", "warn", "info", "verbose", "debug"))),
    "profile_level": dict(enumerate(("off", "basic", "detailed", "optrace"))),
    "target": dict(enumerate(("unknown", "CPU", "HTP"))),
    "platform": dict(enumerate(("unknown", "x86_64", "aarch64 android"))),
    "perf_mode": dict(enumerate(("default", "high performance"))),
}


_TABLES = tables(
    {
        "QnnExecuTorchOpPackageInfo": "op_package_name:str op_package_path:str "
        "interface_provider:str target:i32 custom_op_name:str qnn_op_type_name:str platform:i32",
        "QnnExecuTorchOpPackageOptions": "op_package_infos:[QnnExecuTorchOpPackageInfo]",
        "QnnExecuTorchHtpBackendOptions": "max_sf_buf_size:i32 htp_performance_mode:i32 "
        "htp_precision:i32 pd_session:i32 use_conv_hmx:bool use_dlbc:bool use_fold_relu:bool "
        "use_multi_contexts:bool use_weight_sharing:bool use_slc_allocator:bool",
        "QnnExecuTorchGpuBackendOptions": "gpu_performance_mode:i32 gpu_precision:i32 "
        "use_memory_optimizations:bool use_node_optimizations:bool use_queue_recording:bool "
        "use_weight_sharing:bool",
        "QnnExecuTorchLpaiBackendOptions": "fps:i32 ftrt_ratio:i32 client_perf_type:i32 "
        "affinity:i32 core_selection:u32 target_env:i32",
        "QnnExecuTorchBackendOptions": "backend_type:i32 "
        "htp_options:QnnExecuTorchHtpBackendOptions gpu_options:QnnExecuTorchGpuBackendOptions "
        "lpai_options:QnnExecuTorchLpaiBackendOptions",
        "HtpInfo": "htp_arch:i32 vtcm_size_in_mb:u32",
        "LpaiInfo": "lpai_hardware_version:i32",
        "SocInfo": "soc_model:i32 htp_info:HtpInfo lpai_info:LpaiInfo",
        "QnnExecuTorchOptions": "soc_info:SocInfo backend_options:QnnExecuTorchBackendOptions "
        "library_path:str log_level:i32 online_prepare:bool dump_intermediate_outputs:bool "
        "profile_level:i32 shared_buffer:bool is_from_context_binary:bool saver:bool "
        "saver_output_dir:str op_package_options:QnnExecuTorchOpPackageOptions use_mha2sha:bool",
        "EnnExecuTorchOptions": "chipset:i32 perf_mode:i8",
    }
)
QNN_OPTIONS, SAMSUNG_OPTIONS = _TABLES["QnnExecuTorchOptions"], _TABLES["EnnExecuTorchOptions"]


def read_options(table: Spec[dict[str, Any]], value: bytes) -> dict[str, object]:
    """Return the options of a flatbuffer by dotted name, values with names spelled out.

    Raises: FormatError if the value is not such a flatbuffer
    """
    if not 8 <= len(value) <= _MAX_BYTES:
        raise FormatError("a flatbuffer of options", f"{len(value)} bytes")
    found: dict[str, object] = {}
    _flatten(PayloadReader(memoryview(value)).root(table), "", found)
    return found


def _flatten(options: Mapping[str, Any], prefix: str, found: dict[str, object]) -> None:
    for name, item in options.items():
        if isinstance(item, dict):
            _flatten(cast("dict[str, Any]", item), f"{prefix}{name}.", found)
        elif isinstance(item, tuple):
            for index, inner in enumerate(cast("tuple[dict[str, Any], ...]", item)):
                _flatten(inner, f"{prefix}{name}[{index}].", found)
        elif item is not None and item != "":
            found[prefix + name] = _NAMES[name].get(item, item) if name in _NAMES else item


def qnn_options(value: bytes) -> dict[str, object]:
    """Return the options of QNN, which are the value of any key.

    Raises: FormatError if they are damaged
    """
    return read_options(QNN_OPTIONS, value)


def qnn_facts(specs: CompileSpecs) -> dict[str, object]:
    """Return the options of the QNN compile specs; empty if they cannot be read."""
    return _facts(QNN_OPTIONS, specs)


def samsung_facts(specs: CompileSpecs) -> dict[str, object]:
    """Return the options of the Exynos compile specs; empty if they cannot be read."""
    return _facts(SAMSUNG_OPTIONS, [item for item in specs if item[1][4:8] == b"EETO"])


def _facts(table: Spec[dict[str, Any]], specs: CompileSpecs) -> dict[str, object]:
    for _, value in specs:
        try:
            return read_options(table, value)
        except FormatError:
            continue
    return {}
