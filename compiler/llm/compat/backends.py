"""The group ``backend`` of a configuration, with the names of ExecuTorch's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Any, cast


@dataclass(frozen=True, slots=True)
class XNNPackConfig:
    """Options of the XNNPACK backend."""

    enabled: bool = False
    extended_ops: bool = False
    enable_bf16: bool = False


Other = dict[str, Any]


def _off() -> Other:
    return {}


@dataclass(frozen=True, slots=True)
class BackendConfig:
    """Backends; those without a partitioner here must stay off."""

    xnnpack: XNNPackConfig = field(default_factory=XNNPackConfig)
    coreml: Other = field(default_factory=_off)
    vulkan: Other = field(default_factory=_off)
    qnn: Other = field(default_factory=_off)
    openvino: Other = field(default_factory=_off)
    torchao: Other = field(default_factory=_off)
    tosa: Other = field(default_factory=_off)
    ethosu: Other = field(default_factory=_off)
    vgf: Other = field(default_factory=_off)
    mlx: Other = field(default_factory=_off)


def unavailable(config: BackendConfig) -> Iterator[tuple[str, str]]:
    """Yield the paths of backends that are switched on and have no partitioner."""
    for one in fields(config):
        options: Any = getattr(config, one.name)
        if isinstance(options, dict) and cast("Other", options).get("enabled"):
            yield f"backend.{one.name}.enabled", "no partitioner; available: xnnpack"


def enabled_partitioners(config: BackendConfig) -> tuple[str, ...]:
    """Return the partitioners of the backends that are switched on."""
    return ("xnnpack",) if config.xnnpack.enabled else ()
