"""Compares what a language model needs with the memory of the machine, before weights exist."""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from compiler.llm.config import LlmConfig, LlmConfigError, ModelConfig
from compiler.llm.model import DTYPES, sizes_of
from compiler.llm.plan import ModelShape, plan_lengths, shape_of
from compiler.llm.size_checks import PARAMS, FamilyError, TransformersSizes, member
from compiler.llm.transformers_source import whole_config

# bytes at the peak of an export by those of its weights, measured from 0.2 to 0.5 B parameters
_PEAK: Mapping[str, float] = {"fp32": 2.3, "fp16": 1.8, "bf16": 1.8}
_GIB = 1 << 30
_CGROUP = Path("/sys/fs/cgroup")
_COUNTED = re.compile(
    r"(.*_)?layers?|(.*_)?(hidden|intermediate|vocab)_size|dim|hidden_dim|n_embd|d_model"
    r"|(n|num|moe_num)_.*experts"
)
_MOST_NAMES = 6
_DEFAULTS = "; those that are not given are the family's defaults"


def check_export_memory(config: LlmConfig) -> None:
    """Check that the machine has the memory of an export at its peak.

    Raises: LlmConfigError with the numbers and what to set; errors of ``shape_of``
    """
    own = {str(one.lora_config) for one in config.multimethod.methods if one.lora_config}
    more = len(own - {str(config.base.lora_config)})  # each is a model of its own until the end
    _check(config, _PEAK[config.model.dtype_override] + more, " at the peak of their export")


def check_model_memory(config: LlmConfig) -> None:
    """Check that the machine has the memory of the weights and the cache.

    Raises: as ``check_export_memory``
    """
    _check(config, 1, "")


def _check(config: LlmConfig, times: float, words: str) -> None:
    free = available_bytes()
    if free is None:
        return
    parameters, cache = needed_elements(config)
    weights = parameters * DTYPES[config.model.dtype_override].itemsize
    if weights * times + cache <= free:
        return
    parts = f"{parameters:,} parameters in {config.model.dtype_override} ({_shown(weights)})"
    if cache:
        parts += f" and a cache of {config.export.max_context_length:,} positions ({_shown(cache)})"
    has = f"this machine has {_shown(free)} of memory available"
    sentence = f"{parts} need {_shown(weights * times + cache)}{words}, {has}"
    if cache > weights * times:
        raise LlmConfigError(f"export.max_context_length: {sentence}: set a shorter one")
    place, advice = _advice(config, weights, free - cache)
    raise LlmConfigError(f"{place}: {sentence}: {advice}")


def _shown(size: float) -> str:
    return f"{size / _GIB:,.1f} GiB"


def _advice(config: LlmConfig, weights: int, free: float) -> tuple[str, str]:
    """Return which part of the configuration is too large, and what to set instead."""
    sizes, content = sizes_of(config)
    halved = config.model.dtype_override == "fp32" and weights / 2 * _PEAK["bf16"] <= free
    other = ["model.dtype_override: bf16"] if halved else []
    if config.base.checkpoint is not None and config.base.params is None:
        words = " or ".join([*other, "a machine with more"])
        return "base.checkpoint", f"the sizes are those of the checkpoint; it takes {words}"
    if isinstance(sizes, TransformersSizes):
        content = whole_config(sizes)
    elif isinstance(config.base.params, dict):
        content = config.base.params
    names = [
        f"{member(PARAMS, name)} ({value:,})"
        for name, value in content.items()
        if isinstance(value, int) and value > 1 and _COUNTED.fullmatch(name)
    ]
    smaller = f"smaller sizes as {', '.join(names[:_MOST_NAMES])}" if names else "smaller sizes"
    given = _DEFAULTS if isinstance(sizes, TransformersSizes) else ""
    return PARAMS, f"set {' or '.join([*other, smaller])}{given}"


def needed_elements(config: LlmConfig) -> tuple[int, int]:
    """Return the number of parameters, and the bytes of the cache where they are known.

    Raises: errors of ``shape_of``
    """
    length = config.export.max_context_length
    try:
        shape = shape_of(config)
    except FamilyError:  # a state that is not known without weights
        if not config.model.use_kv_cache:
            raise
        # a plain model: other options may need the cache, and would hide what is wrong
        model = ModelConfig(dtype_override=config.model.dtype_override)
        return _parameters(shape_of(replace(config, model=model)), length), 0
    (plan,) = plan_lengths(config, [length])
    return _parameters(shape, length), plan.cache


def _parameters(shape: ModelShape, length: int) -> int:
    learned = shape.per_position * max(length, shape.positions) if shape.positions else 0
    return shape.parameters + learned


def available_bytes() -> int | None:
    """Return the memory that a program may still take, swap included; None if unknown."""
    try:
        system: Any = importlib.import_module("psutil")
        free = system.virtual_memory().available + system.swap_memory().free
    except (ImportError, OSError, RuntimeError):  # a user's interpreter may have no psutil
        return None
    limit = _group_bytes(_CGROUP)
    return free if limit is None else min(free, limit)


def _group_bytes(folder: Path) -> int | None:
    """Return what the control group of a container leaves, None without a limit."""
    with suppress(OSError, ValueError):
        limit = int((folder / "memory.max").read_text())
        used = int((folder / "memory.current").read_text())
        lines = (folder / "memory.stat").read_text().splitlines()
        kept = dict(one.split() for one in lines)
        return max(0, limit - used + int(kept.get("inactive_file", 0)))  # files can be read again
    return None
