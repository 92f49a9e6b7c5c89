"""A configuration in the words of a recipe; free of torch, so that a window can show them."""

from __future__ import annotations

from compiler.llm.compat.backends import enabled_partitioners
from compiler.llm.config import LlmConfig


def partitioners_of(config: LlmConfig) -> tuple[str, ...]:
    """Return the partitioners of a configuration by name."""
    return enabled_partitioners(config.backend)


def shares_state(config: LlmConfig) -> bool:
    """Return whether the methods of a configuration share buffers, as several with a cache do."""
    several = len(config.multimethod.methods) > 1
    return config.multimethod.share_mutable_buffers or (several and config.model.use_kv_cache)


def in_files(config: LlmConfig) -> bool:
    """Return whether weights are stored beside the program."""
    return bool(config.export.foundation_weights_file or config.export.lora_weights_file)
