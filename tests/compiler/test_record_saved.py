"""Dictionaries of tensors that are written from where they lie: torch reads what it would save."""

from __future__ import annotations

import io
import zipfile
import zlib
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from compiler.record.torch_save import SavedStates
from schema.etrecord.archive.crc import joined
from schema.etrecord.archive.zip_write import Content, Pieces, archive_chunks

pytestmark = pytest.mark.slow

_TYPES = (
    *("uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "bool"),
    *("bfloat16", "complex64", "complex128", "uint16", "uint32", "uint64"),
    *("float8_e5m2", "float8_e4m3fn"),
)
_LARGE = torch.randn(200, 200, generator=torch.Generator().manual_seed(0))
_PARAMETER = torch.nn.Parameter(torch.arange(6.0).reshape(2, 3))
_STATES: dict[str, dict[str, Any]] = {
    "nothing": {},
    "types": {name: torch.arange(6).to(getattr(torch, name)).reshape(2, 3) for name in _TYPES},
    "parameters": {"a": _PARAMETER, "b": torch.nn.Parameter(torch.ones(3), requires_grad=False)},
    "tied": {"a": _PARAMETER, "b": _PARAMETER, "c": _PARAMETER.detach()},
    "views": {"whole": _LARGE, "turned": _LARGE.T, "part": _LARGE[3:5, ::2], "one": _LARGE[7, 7]},
    "a part of a storage": {"part": _LARGE[3:5, 4:9]},
    "spread": {"x": torch.ones(3, 1).expand(3, 1000)},
    "empty": {"a": torch.empty(0, 4), "b": torch.empty(0, dtype=torch.int64), "c": torch.ones(())},
    "channels last": {"x": torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last)},
    "names": {"näme …": torch.ones(2), "": torch.zeros(2), "a.b\n": torch.ones(1)},
    "conjugated": {"x": torch.ones(2, dtype=torch.complex64).conj()},
    "sparse": {"x": torch.eye(3).to_sparse()},
    "not a tensor": {"x": [1, torch.ones(2)], "y": "text"},
}


def _bytes(data: Any) -> bytes:
    return b"".join(data.parts) if isinstance(data, Pieces) else bytes(data)


def _storages(state: dict[str, Any]) -> set[int]:
    strided = (t for t in state.values() if getattr(t, "layout", None) is torch.strided)
    return {tensor.untyped_storage().data_ptr() for tensor in strided}


@pytest.mark.parametrize("name", _STATES)
def test_torch_reads_what_it_would_have_saved(name: str) -> None:
    state = _STATES[name]
    stream = io.BytesIO()
    torch.save(state, stream)
    theirs = torch.load(io.BytesIO(stream.getvalue()), weights_only=True)
    found = torch.load(io.BytesIO(_bytes(SavedStates().bytes_of(state))), weights_only=True)
    assert list(found) == list(theirs)
    for key, tensor in theirs.items():
        if not isinstance(tensor, torch.Tensor) or tensor.layout is not torch.strided:
            assert str(found[key]) == str(tensor)
            continue
        mine = found[key]
        assert (type(mine), mine.dtype, mine.requires_grad) == (
            *(type(tensor), tensor.dtype, tensor.requires_grad),
        )
        assert (mine.shape, mine.stride(), mine.storage_offset()) == (
            *(tensor.shape, tensor.stride(), tensor.storage_offset()),
        )
        assert mine.untyped_storage().nbytes() == tensor.untyped_storage().nbytes()
        assert mine.tolist() == tensor.tolist()
    assert len(_storages(found)) == len(_storages(theirs))


def test_one_storage_of_two_types_is_refused_as_torch_refuses_it() -> None:
    both = {"a": _LARGE, "b": _LARGE.view(torch.int32)}
    with pytest.raises(RuntimeError, match="different types"):
        SavedStates().bytes_of(both)


def test_bytes_of_tensors_are_not_copied_and_those_of_equal_dictionaries_made_once() -> None:
    saved = SavedStates()
    data = saved.bytes_of({"x": _LARGE})
    assert isinstance(data, Pieces)
    assert saved.bytes_of({"x": _LARGE}) is data
    kept = _LARGE[0, 0].item()
    try:
        _LARGE[0, 0] = 17.0
        found = torch.load(io.BytesIO(_bytes(data)), weights_only=True)["x"]
        assert found[0, 0].item() == 17.0
    finally:
        _LARGE[0, 0] = kept


def test_archive_in_an_archive_has_the_checksums_of_its_bytes() -> None:
    saved = SavedStates()
    inner = [saved.bytes_of({"x": _LARGE}), saved.bytes_of({"x": _LARGE, "y": torch.ones(3)})]
    contents = [Content(f"{place}.pt", data) for place, data in enumerate(inner)]
    whole = io.BytesIO(b"".join(archive_chunks(contents, saved.sums)))
    with zipfile.ZipFile(whole) as archive:
        assert archive.testzip() is None
        for name in archive.namelist():
            with zipfile.ZipFile(io.BytesIO(archive.read(name))) as each:
                assert each.testzip() is None


@given(st.lists(st.binary(max_size=70_000), max_size=4))
@settings(deadline=None, max_examples=60)
def test_checksums_are_joined_as_their_bytes(parts: list[bytes]) -> None:
    found = 0
    for part in parts:
        found = joined(found, zlib.crc32(part), len(part))
    assert found == zlib.crc32(b"".join(parts))
