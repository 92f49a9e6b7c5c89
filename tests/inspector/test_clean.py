"""What jobs wrote is listed and removed; what the user has is not touched."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from inspector.files.written_folders import removed, written_folders
from tests.inspector.cli_runs import run, valid


def _run(folder: Path, values: int = 0, listed: tuple[str, ...] = ()) -> Path:
    folder.mkdir(parents=True)
    (folder / "run.etdp").write_bytes(bytes(100))
    names = ["run.etdp", "gone.pt", *listed]
    if values:
        (folder / "values.debug").write_bytes(bytes(values))
        names.append("values.debug")
    report = {"etscope": "1", "files": [{"path": name, "bytes": 1} for name in names]}
    (folder / "run.json").write_text(json.dumps(report))
    return folder


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A program with runs, a variant with its run, a bisection, and files of the user."""
    home = tmp_path / "home"
    home.mkdir()
    (home / "net.pte").write_bytes(b"program")
    _run(home / "net_run", 5_000, ("../net.pte", "/etc/passwd", "..", ""))
    _run(home / "net_run_2")
    (home / "net_run_2/notes.txt").write_text("mine")
    _run(home / "other_run")
    variant = home / "net_variants/net_1"
    variant.mkdir(parents=True)
    (variant / "model.pte").write_bytes(bytes(10))
    (variant / "compile.json").write_text(
        json.dumps({"etscope": "1", "files": [{"path": "model.pte"}]})
    )
    _run(variant / "run")
    (home / "net_variants/bisect-12").mkdir()
    (home / "net_variants/bisect-12/bisect.json").write_text("{}")
    _run(tmp_path / "elsewhere", 9_000)
    (home / "net_variants/link").symlink_to(tmp_path / "elsewhere")
    (home / "results").mkdir()
    (home / "results/run.json").write_text('{"files": [{"path": "mine.txt"}]}')
    return home / "net.pte"


def _point(folder: Path) -> Path:
    """A point of a sweep, with its runs, logged values and evaluation."""
    _run(folder / "run")
    _run(folder / "numbers", 700, ("../../../mine.txt",))
    (folder / "model.pte").write_bytes(bytes(10))
    compiled = {"etscope": "1", "files": [{"path": "model.pte"}, {"path": "../../results.json"}]}
    (folder / "compile.json").write_text(json.dumps(compiled))
    (folder / "point.json").write_text('{"number": 0, "key": "a1", "status": "done"}')
    (folder / "eval").mkdir()
    (folder / "eval/eval.json").write_text('{"eval": 1}')
    (folder / "eval/samples.jsonl").write_text("{}")
    return folder


def _sweep(folder: Path, recipe: Path) -> Path:
    _point(folder / "points/a1")
    (folder / "points/b2/run").mkdir(parents=True)
    (folder / "points/b2/model.pte").write_text("mine: no report names it")
    results = {"sweep": 1, "etscope": "1", "recipe": str(recipe), "points": []}
    (folder / "results.json").write_text(json.dumps(results))
    return folder


@pytest.mark.slow
def test_sweep_is_one_folder_of_which_only_written_files_go(program: Path) -> None:
    home = program.parent
    sweep = _sweep(home / "grid", home / "net_variants/net_1/recipe.json")
    _sweep(home / "other", home / "elsewhere/recipe.json")
    (sweep / "mine.txt").write_text("mine")
    assert _names(program)["grid"] == "sweep"
    assert "other" not in _names(program)
    assert _names(home)["other"] == "sweep"
    assert not any("points" in name for name in _names(home))
    (found,) = [one for one in written_folders(program) if one.kind.value == "sweep"]
    assert found.values_size == 700
    assert found.size == sum(found.files.values()) > 900
    assert removed(found, values_only=True) == 700
    data = valid(run("clean", program, "--remove", "sweeps", "--format", "json"), "clean")["data"]
    assert [one["kind"] for one in data["folders"] if one["removed_bytes"]] == ["sweep"]
    left = {str(path.relative_to(sweep)) for path in sweep.rglob("*") if path.is_file()}
    assert left == {"mine.txt", "points/b2/model.pte"}
    assert not (sweep / "points/a1").exists()
    assert (home / "other/points/a1/model.pte").is_file()


def test_linked_points_of_a_sweep_stay(program: Path) -> None:
    sweep = _sweep(program.parent / "grid", program.with_name("recipe.json"))
    elsewhere = _point(program.parents[1] / "b" / "c3")
    (sweep / "points/c3").symlink_to(elsewhere)
    (found,) = [one for one in written_folders(program) if one.kind.value == "sweep"]
    removed(found)
    assert (elsewhere / "model.pte").is_file()


def _names(place: Path) -> dict[str, str]:
    base = place if place.is_dir() else place.parent
    return {str(one.path.relative_to(base)): one.kind.value for one in written_folders(place)}


def test_folders_beside_a_program_are_found(program: Path) -> None:
    assert _names(program) == {
        "net_run": "run",
        "net_run_2": "run",
        "net_variants/net_1": "variant",
        "net_variants/net_1/run": "run",
        "net_variants/bisect-12": "bisection",
    }
    assert set(_names(program.parent)) - set(_names(program)) == {"other_run"}
    first = written_folders(program)[0]
    assert (first.path.name, first.values_size) == ("net_run", 5_000)
    assert sorted(first.files) == ["run.etdp", "run.json", "values.debug"]


def test_only_files_that_a_report_names_are_removed(program: Path) -> None:
    folders = {one.path.name: one for one in written_folders(program)}
    assert removed(folders["net_run"], values_only=True) == 5_000
    assert (program.parent / "net_run/run.etdp").is_file()
    for one in written_folders(program):
        removed(one)
    assert program.read_bytes() == b"program"
    left = {str(path.relative_to(program.parent)) for path in program.parent.rglob("*")}
    assert left == {
        "net.pte",
        "net_run_2",
        "net_run_2/notes.txt",
        "net_variants",
        "net_variants/link",
        "other_run",
        "other_run/run.etdp",
        "other_run/run.json",
        "results",
        "results/run.json",
    }
    assert (program.parents[1] / "elsewhere/values.debug").is_file()


def test_verb_lists_and_removes_what_is_named(program: Path) -> None:
    listed = valid(run("clean", program, "--format", "json"), "clean")["data"]
    assert (len(listed["folders"]), listed["removed_bytes"]) == (5, 0)
    assert listed["bytes"] == sum(one["bytes"] for one in listed["folders"]) > 5_000
    text = run("clean", program)
    assert "net_variants/net_1" in text.out
    assert "nothing is removed; --remove values" in text.out
    assert "trials, sweeps or FOLDER does" in text.out
    refused = run("clean", program, "--remove", program.parent / "other_run")
    assert (refused.code, "is not in the list" in refused.err) == (2, True)
    chosen = ("--remove", "values", "--remove", program.parent / "net_run_2")
    data = valid(run("clean", program, *chosen, "--format", "json"), "clean")["data"]
    assert data["removed_bytes"] > 5_000
    assert (program.parent / "net_run/run.etdp").is_file()
    assert not (program.parent / "net_run/values.debug").exists()
    gone = valid(run("clean", program, "--remove", "runs", "--format", "json"), "clean")["data"]
    assert {one["kind"] for one in gone["folders"] if not one["removed_bytes"]} == {
        "variant",
        "bisection",
    }
    assert run("clean", program.parent / "not there").code == 3
    table = run("table", "disk", program.parent)
    assert (table.code, "bisection" in table.out) == (0, True)


def test_values_of_the_calls_of_a_sequence_are_values(tmp_path: Path) -> None:
    calls = ("calls/00000.pt", "calls/00001.pt", "calls/../../mine.pt", "calls/notes.txt")
    folder = _run(tmp_path / "net_run", 5_000, calls)
    (folder / "calls").mkdir()
    for name in (*calls[:2], calls[3]):
        (folder / name).write_bytes(bytes(700))
    (tmp_path / "mine.pt").write_bytes(b"mine")
    (found,) = written_folders(tmp_path)
    assert found.values_size == 5_000 + 2 * 700
    assert removed(found, values_only=True) == 6_400
    assert [one.name for one in (folder / "calls").iterdir()] == ["notes.txt"]
    assert (tmp_path / "mine.pt").exists()


def test_calls_behind_a_link_are_not_removed(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "00000.pt").write_bytes(b"mine")
    folder = _run(tmp_path / "net_run", 5_000, ("calls/00000.pt",))
    (folder / "calls").symlink_to(elsewhere)
    for one in written_folders(tmp_path):
        removed(one)
    assert (elsewhere / "00000.pt").exists()
