"""Where programs come from: load modes, loaders, and the older functions that take them."""

from __future__ import annotations

import io
import lzma
import mmap
from pathlib import Path
from typing import Any

import pytest
import torch

from runtime import (
    BufferDataLoader,
    DataLoader,
    ErrorCode,
    ExecutionError,
    FileDataLoader,
    LoadMode,
    MmapDataLoader,
    Runtime,
    platform,
)
from runtime.compat import portable_lib
from runtime.compat.module import Module
from runtime.program import loaders
from schema import etdump
from tests.runtime.one_op import one_operator
from tests.runtime.samples import DATA

ONES = torch.ones(4)


@pytest.fixture(scope="module")
def program() -> bytes:
    return one_operator("aten::add.out", [ONES, ONES, 1], [(torch.float32, (4,))])[0]


@pytest.fixture
def file(program: bytes, tmp_path: Path) -> Path:
    path = tmp_path / "model.pte"
    path.write_bytes(program)
    return path


class Compressed(DataLoader):
    """A loader of a user: the bytes are compressed."""

    def __init__(self, data: bytes) -> None:
        self.name = "model.pte.xz"
        self._data = lzma.decompress(data)

    def size(self) -> int:
        return len(self._data)

    def load(self, offset: int, size: int) -> bytes:
        return self._data[offset : offset + size]


@pytest.fixture(autouse=True)
def unlimited(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Let pages be locked whatever the limit of this machine is; return how many bytes were."""
    locked: list[int] = []

    def lock(address: int, size: int) -> str:
        assert address % mmap.PAGESIZE == 0
        locked.append(size)
        return ""

    monkeypatch.setattr(loaders, "lock_memory", lock)
    return locked


def _sum(loaded: Any) -> list[float]:
    (found,) = loaded.load_method("forward").execute([ONES, ONES * 2])
    return found.tolist()


@pytest.mark.parametrize("mode", [None, *LoadMode])
def test_program_runs_in_each_load_mode(
    mode: LoadMode | None, file: Path, unlimited: list[int]
) -> None:
    assert _sum(Runtime().load_program(file, load_mode=mode)) == [3.0] * 4
    assert _sum(Runtime().load_program(str(file), load_mode=mode)) == [3.0] * 4
    assert Module(file, load_mode=mode).forward(ONES, ONES)[0].tolist() == [2.0] * 4
    uses_mlock = mode in (LoadMode.MmapUseMlock, LoadMode.MmapUseMlockIgnoreErrors)
    assert unlimited == [file.stat().st_size] * 3 * uses_mlock


@pytest.mark.parametrize("mode", LoadMode)
def test_data_files_are_loaded_in_the_same_mode(mode: LoadMode, unlimited: list[int]) -> None:
    folder = DATA / "extra/external_weights"
    (data,) = folder.glob("*.ptd")
    found = Runtime().load_program(folder / "model.pte", data_path=data, load_mode=mode)
    meta = found.metadata("forward")
    inputs = [torch.ones(meta.input_tensor_meta(i).sizes()) for i in range(meta.num_inputs())]
    plain = Runtime().load_program(folder / "model.pte", data_path=data)
    expected = plain.load_method("forward").execute(inputs)
    for ours, wanted in zip(found.load_method("forward").execute(inputs), expected, strict=True):
        assert torch.equal(ours, wanted)
    assert len(unlimited) == 2 * ("Mlock" in mode.name)


def test_program_runs_from_each_loader(program: bytes, file: Path) -> None:
    for loader in (
        BufferDataLoader(program),
        BufferDataLoader(bytearray(program)),
        BufferDataLoader(memoryview(program)),
        FileDataLoader(file),
        *(MmapDataLoader(file, mode) for mode in LoadMode if mode is not LoadMode.File),
        Compressed(lzma.compress(program)),
    ):
        assert loader.size() == len(program)
        assert bytes(loader.load(4, 8)) == program[4:12]
        assert _sum(Runtime().load_program(loader)) == [3.0] * 4
        assert Module(loader).forward(ONES, ONES)[0].tolist() == [2.0] * 4
        module = portable_lib._load_for_executorch_from_data_loader(loader)
        assert module.forward([ONES, ONES])[0].tolist() == [2.0] * 4
    assert _sum(Runtime().load_program(io.BytesIO(program))) == [3.0] * 4


@pytest.mark.parametrize(("offset", "size"), [(0, 9), (9, 0), (-1, 2), (2, -1), (8, 1)])
def test_bytes_beyond_a_source_are_an_error(offset: int, size: int, tmp_path: Path) -> None:
    path = tmp_path / "eight"
    path.write_bytes(bytes(8))
    for loader in (BufferDataLoader(bytes(8)), FileDataLoader(path), MmapDataLoader(path)):
        assert bytes(loader.load(8, 0)) == b""
        with pytest.raises(ExecutionError, match=r"which has 8") as caught:
            loader.load(offset, size)
        assert caught.value.code is ErrorCode.InvalidArgument


@pytest.mark.parametrize("mode", [None, *LoadMode])
def test_file_that_is_not_there_or_empty_is_an_error_in_each_mode(
    mode: LoadMode | None, tmp_path: Path
) -> None:
    with pytest.raises(ExecutionError, match=r"none\.pte cannot be read") as caught:
        Runtime().load_program(tmp_path / "none.pte", load_mode=mode)
    assert caught.value.code is ErrorCode.AccessFailed
    (tmp_path / "empty.pte").touch()
    with pytest.raises(ExecutionError) as caught:
        Runtime().load_program(tmp_path / "empty.pte", load_mode=mode)
    assert caught.value.code is ErrorCode.InvalidProgram


def test_memory_that_cannot_be_locked_is_an_error_unless_errors_are_ignored(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loaders, "lock_memory", lambda _address, _size: "Cannot allocate memory")
    with pytest.raises(ExecutionError, match="cannot be locked in memory: Cannot alloc") as caught:
        Runtime().load_program(file, load_mode=LoadMode.MmapUseMlock)
    assert caught.value.code is ErrorCode.NotSupported
    assert "ulimit -l" in caught.value.remedy
    said: list[str] = []
    with platform.replaced(log=lambda message: said.append(message.text)):
        found = Runtime().load_program(file, load_mode=LoadMode.MmapUseMlockIgnoreErrors)
    assert _sum(found) == [3.0] * 4
    assert any("cannot be locked" in text for text in said)


def test_locking_reports_what_the_system_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    assert loaders.lock_memory(0, 1 << 62)  # not the address of anything
    region = mmap.mmap(-1, mmap.PAGESIZE)
    refused = loaders.lock_memory(
        loaders.from_buffer(region, torch.uint8, 1).data_ptr(), mmap.PAGESIZE
    )
    assert refused == "" or "memory" in refused or "permitted" in refused


def test_profile_blocks_are_an_etdump_of_what_modules_run(program: bytes) -> None:
    module = portable_lib._load_for_executorch_from_buffer(program)
    portable_lib._reset_profile_results()
    module.forward([ONES, ONES])
    assert portable_lib._dump_profile_results() == b""
    portable_lib._create_profile_block("first")
    module.forward([ONES, ONES])
    portable_lib._create_profile_block("second")
    module.forward([ONES, ONES])
    module.forward([ONES, ONES])
    dump = etdump.decode(portable_lib._dump_profile_results())
    assert [run.name for run in dump.run_data] == ["first", "second"]
    calls = [
        sum(getattr(event, "name", "") == "native_call_add.out" for event in run.events)
        for run in dump.run_data
    ]
    assert calls == [1, 2]
    portable_lib._reset_profile_results()
    module.forward([ONES, ONES])
    assert portable_lib._dump_profile_results() == b""


@pytest.mark.parametrize("data", [b"invalid bytes", b"", b"\x10\0\0\0FT01" + bytes(8)])
def test_unreadable_data_is_an_error_of_the_first_method(program: bytes, data: bytes) -> None:
    module = portable_lib._load_for_executorch_from_buffer(program, data)
    assert module.method_names() == ["forward"]
    for _ in range(2):
        with pytest.raises(ExecutionError) as caught:
            module.forward([ONES, ONES])
        assert caught.value.code is ErrorCode.InvalidExternalData
    with pytest.raises(ExecutionError):
        portable_lib._load_for_executorch_from_buffer(b"invalid bytes", data)
