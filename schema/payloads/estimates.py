"""A vendor's tool's estimates of a payload: cycles of layers, use of memories, tensors' places."""

from __future__ import annotations

from dataclasses import dataclass

MEMORY_NAMES = ("SRAM", "DRAM", "on-chip flash", "off-chip flash")


@dataclass(frozen=True, slots=True)
class LayerEstimate:
    """A layer of the command stream.

    Attributes:
        operator: of the graph that was compiled
        npu_operator: that the NPU runs for it
        target: NPU or CPU
        name: tensor that it writes, that of the last operator fused into it
        cycles: it takes, the largest of the following ones where these overlap
        npu_cycles: of its arithmetic
        access_cycles: of each memory, in the order of MEMORY_NAMES
        staging_bytes: fast memory in use while it runs
        macs: multiplications with addition
        utilization: share of the NPU's multipliers that are busy
    """

    operator: str
    npu_operator: str
    target: str
    name: str
    cycles: int | None
    npu_cycles: int | None
    access_cycles: tuple[int | None, ...]
    staging_bytes: int | None
    macs: int | None
    utilization: float | None


@dataclass(frozen=True, slots=True)
class MemoryEstimate:
    """One memory in one inference.

    Attributes:
        memory: name
        used: bytes that are occupied
        holds: what is placed in it
        feature_map_read: bytes
        feature_map_written: bytes
        weights_read: bytes
        weights_written: bytes
        access_cycles: spent on it
    """

    memory: str
    used: int | None
    holds: str
    feature_map_read: int | None
    feature_map_written: int | None
    weights_read: int | None
    weights_written: int | None
    access_cycles: int | None


@dataclass(frozen=True, slots=True)
class EstimateSummary:
    """Assumptions and totals of an inference.

    Attributes:
        accelerator: configuration it was compiled for
        system_config: name of the system
        memory_mode: name of the mode
        clock: cycles a second
        cycles: of one inference
        seconds: of one inference
        memories: in the order of MEMORY_NAMES
    """

    accelerator: str
    system_config: str
    memory_mode: str
    clock: float | None
    cycles: int | None
    seconds: float | None
    memories: tuple[MemoryEstimate, ...]


@dataclass(frozen=True, slots=True)
class TensorPlace:
    """A tensor in a memory of the NPU's system.

    Attributes:
        name: of the tensor
        memory: that holds it
        usage: what for
        dtype: of its elements
        layout: order of its elements
        address: of its first byte in the memory
        nbytes: that it takes
        first: time at which it is written, counted in steps of the schedule
        last: time of its last use
    """

    name: str
    memory: str
    usage: str
    dtype: str
    layout: str
    address: int | None
    nbytes: int | None
    first: int | None
    last: int | None


@dataclass(frozen=True, slots=True)
class PayloadEstimate:
    """The files of the vendor's tool for a payload.

    Attributes:
        summary: None if it is missing
        layers: in the order of the payload
        nodes: of each layer, operators of the graph that it was compiled from, first and last
        commands: name of each node of the payload and index of its layer, None for one of no layer
        tensors: in the memories of the system
    """

    summary: EstimateSummary | None
    layers: tuple[LayerEstimate, ...]
    nodes: tuple[tuple[str, ...], ...] = ()
    commands: tuple[tuple[str, int | None], ...] = ()
    tensors: tuple[TensorPlace, ...] = ()
