"""The words of a recipe about passes and the backend config: what there is, and what they mean."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

PASSES = ("constant_folding", "dead_code", "unused_weights", "duplicates", "views")
"""Passes that may be run before partitioners look at the program, by name."""
PLANNING: Mapping[str, type] = {
    "allow_lifetime_and_storage_overlap": bool,
    "alloc_graph_input": bool,
    "alloc_graph_output": bool,
    "alloc_mutable_buffers": bool,
    "share_mutable_buffers": bool,
    "alignment": int,
}
"""Those of the names that are options of ``MemoryPlanningPass``."""
CONFIG: Mapping[str, type] = {
    "emit_stacktrace": bool,
    "extract_delegate_segments": bool,
    "segment_alignment": int,
    "constant_tensor_alignment": int,
    "delegate_alignment": int,
    "remove_view_copy": bool,
    "external_mutable_weights": bool,
    "emit_mutable_buffer_names": bool,
    "do_quant_fusion_and_const_prop": bool,
    "run_reinplace_pass": bool,
    "enable_non_cpu_memory_planning": bool,
    "joint_arena": bool,
}
"""Those that are fields of ``ExecutorchBackendConfig``."""
_WORDS = {"true": True, "false": False}
_MOST = 1 << 30


class WordError(ValueError):
    """A word that means nothing here; says what there is."""


def config_of(words: Iterable[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return fields of the backend config, and options of memory planning; the last word counts.

    Args:
        words: each ``NAME=VALUE``

    Raises: WordError
    """
    config: dict[str, Any] = {}
    planning: dict[str, Any] = {}
    for text in words:
        name, equals, word = text.partition("=")
        kind = CONFIG.get(name) or PLANNING.get(name)
        if not equals or kind is None:
            there = ", ".join((*CONFIG, *PLANNING))
            raise WordError(f"{text!r} is no NAME=VALUE of the backend config; there is {there}")
        (config if name in CONFIG else planning)[name] = _value(text, word, kind)
    return config, planning


def _value(text: str, word: str, kind: type) -> object:
    if kind is bool:
        if word not in _WORDS:
            raise WordError(f"{text!r}: expected true or false")
        return _WORDS[word]
    if not word.isascii() or not word.isdecimal() or not 0 < int(word[:12]) <= _MOST:
        raise WordError(f"{text!r}: expected a whole number of bytes")
    return int(word)


def check_passes(names: Iterable[str]) -> None:
    """Raise WordError for a pass that is none of ``PASSES``."""
    for name in names:
        if name not in PASSES:
            raise WordError(f"no pass {name!r}; there is {', '.join(PASSES)}")
