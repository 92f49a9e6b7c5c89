"""Parses the settings of a recipe for passes and the backend config."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from schema.recipe.assignments import AssignmentError, parse_setting
from schema.recipe.passes import recipe_passes

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
    "store_zero_state": bool,
}
"""Those that are fields of ``ExecutorchBackendConfig``."""
EDGE_CONFIG: Mapping[str, type] = {
    "preserve_ops": tuple,
    "_core_aten_ops_exception_list": tuple,
    "_check_ir_validity": bool,
    "_skip_dim_order": bool,
    "_fold_constants": bool,
}
"""Fields of ``EdgeCompileConfig``; a tuple is operators, separated by commas."""
_IN_FILE = ".py:"
_WORDS = {"true": True, "false": False}
_MOST = 1 << 30  # 1 GiB


class WordError(ValueError):
    """An unknown or malformed setting; the message lists what is available."""


def config_of(words: Iterable[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return fields of the backend config, and options of memory planning; the last setting wins.

    Args:
        words: each ``NAME=VALUE``

    Raises: WordError
    """
    config: dict[str, Any] = {}
    planning: dict[str, Any] = {}
    for text in words:
        name, word = _setting(text, {**CONFIG, **PLANNING}, "the backend config")
        kind = CONFIG.get(name) or PLANNING[name]
        (config if name in CONFIG else planning)[name] = _value(text, word, kind)
    return config, planning


def edge_config_of(words: Iterable[str]) -> dict[str, Any]:
    """Return fields of the edge compile config; settings of one field are combined.

    Args:
        words: each ``NAME=VALUE``, as ``preserve_ops=aten.linear.default``

    Raises: WordError
    """
    found: dict[str, Any] = {}
    for text in words:
        name, word = _setting(text, EDGE_CONFIG, "the edge config")
        kind = EDGE_CONFIG[name]
        if kind is tuple:
            found[name] = (*found.get(name, ()), *_operators(text, word))
        else:
            found[name] = _value(text, word, kind)
    return found


def _setting(text: str, names: Mapping[str, type], where: str) -> tuple[str, str]:
    try:
        return parse_setting(text, f"NAME=VALUE of {where}", names)
    except AssignmentError as error:
        raise WordError(str(error)) from error


def _operators(text: str, word: str) -> list[str]:
    names = [name.strip() for name in word.split(",")]
    for name in names:
        if not all(part.isidentifier() for part in name.split(".")) or name.count(".") != 2:
            raise WordError(f"{text!r}: expected operators as aten.linear.default, found {name!r}")
    return names


def _value(text: str, word: str, kind: type) -> object:
    if kind is bool:
        if word not in _WORDS:
            raise WordError(f"{text!r}: expected true or false")
        return _WORDS[word]
    if not word.isascii() or not word.isdecimal() or len(word) > 12 or not 0 < int(word) <= _MOST:
        raise WordError(f"{text!r}: expected an integer of bytes")
    return int(word)


def check_passes(names: Iterable[str]) -> None:
    """Raise WordError for a pass that is neither a standard pass nor in a file of the user."""
    for name in names:
        if name not in recipe_passes() and not in_file(name):
            known = ", ".join(recipe_passes())
            raise WordError(f"unknown pass {name!r}; available: {known}, file.py:NAME")


def in_file(text: str) -> bool:
    """Return whether a name refers to a Python file of the user."""
    return _IN_FILE in text


def file_of(text: str) -> str:
    """Return the path of the Python file in ``file.py:NAME``."""
    return text.partition(_IN_FILE)[0] + ".py"
