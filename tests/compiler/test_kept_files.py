"""Files that a vendor's tools leave in the folder that its compile specs name."""

from __future__ import annotations

from pathlib import Path

from compiler.backends.ethosu import leaving_files
from compiler.delegate.kept_files import with_kept_files
from compiler.interface.backend import CompileSpec, PreprocessResult

FLAGS = CompileSpec("compile_flags", b"--accelerator-config=ethos-u55-128 --verbose-performance")


def _run(specs: list[CompileSpec]) -> PreprocessResult:
    (folder,) = [bytes(one.value).decode() for one in specs if one.key == "debug_artifact_path"]
    Path(folder, "output").mkdir()
    for name in ("a.tosa", "b.tosa", "output/layers.csv"):
        Path(folder, name).write_bytes(b"rows" if name.endswith("csv") else b"graph")
    return PreprocessResult(b"payload")


def test_files_are_kept_once_and_the_folder_is_gone() -> None:
    result = with_kept_files("EthosUBackend", [FLAGS], _run)
    assert result.kept == {"a.tosa": b"graph", "output/layers.csv": b"rows"}


def test_a_backend_whose_tools_leave_nothing_gets_its_specs_as_they_are() -> None:
    given: list[list[CompileSpec]] = []

    def run(specs: list[CompileSpec]) -> PreprocessResult:
        given.append(specs)
        return PreprocessResult(b"payload")

    assert with_kept_files("NativeBackend", [FLAGS], run).kept is None
    assert given == [[FLAGS]]


def test_flags_are_added_once_and_a_users_folder_stays() -> None:
    flags = bytes(leaving_files([FLAGS], "folder")[0].value).decode().split()
    assert flags.count("--verbose-performance") == 1
    assert "--verbose-cycle-estimate" in flags
    own = [FLAGS, CompileSpec("debug_artifact_path", b"mine")]
    assert leaving_files(own, "folder") == own


def test_only_texts_lose_the_name_of_the_folder() -> None:
    places: list[bytes] = []

    def run(specs: list[CompileSpec]) -> PreprocessResult:
        (folder,) = [bytes(one.value) for one in specs if one.key == "debug_artifact_path"]
        places.append(folder + b"/a")
        Path(folder.decode(), "out.csv").write_bytes(b"name\n" + places[0])
        Path(folder.decode(), "out.tosa").write_bytes(b"\x04\0\0\0" + places[0])
        return PreprocessResult(b"payload")

    result = with_kept_files("EthosUBackend", [FLAGS], run)
    assert result.kept == {"out.csv": b"name\na", "out.tosa": b"\x04\0\0\0" + places[0]}
