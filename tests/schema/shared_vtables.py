"""Writes flatbuffers as Python's builder did before 25.12: vtables shared whatever the size."""

from __future__ import annotations

from typing import Any

import flatbuffers
import pytest

_KEY_HAS_SIZE = tuple(map(int, flatbuffers.__version__.split(".")[:2])) >= (25, 12)


class _ByOffsets(dict[Any, int]):
    """Vtables by the offsets of their fields alone."""

    def get(self, key: tuple[int, ...], default: Any = None) -> Any:
        return super().get(key[:-1] if _KEY_HAS_SIZE else key, default)

    def __setitem__(self, key: tuple[int, ...], value: int) -> None:
        super().__setitem__(key[:-1] if _KEY_HAS_SIZE else key, value)


def share_vtables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every flatbuffer that is built from now on share its vtables like that."""
    end = flatbuffers.Builder.EndObject
    shared: dict[int, tuple[Any, _ByOffsets]] = {}

    def ending(builder: Any) -> int:
        _, builder.vtables = shared.setdefault(id(builder), (builder, _ByOffsets()))
        return end(builder)

    monkeypatch.setattr(flatbuffers.Builder, "EndObject", ending)
