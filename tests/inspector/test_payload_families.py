"""Payloads no recorded program holds, in programs of their own: every verb, every place of data."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.inspector.cli_runs import run, valid
from tests.schema.payload_programs import Family, families, write

pytestmark = pytest.mark.slow

VERBS = ("summary", "delegation", "size", "graph", "tensors", "check")
NAMED = [family for family in families() if family.named]


@pytest.mark.parametrize("family", families(), ids=str)
def test_family_is_shown_by_every_verb(family: Family, tmp_path: Path) -> None:
    files = write(family, tmp_path, inside=True)
    answers = {verb: run(verb, *files, "--format", "json") for verb in VERBS}
    for verb, answer in answers.items():
        assert answer.code == 0, f"{verb}: {answer.err}"
    data = {verb: valid(answer, verb)["data"] for verb, answer in answers.items()}
    size = data["size"]
    assert sum(part["bytes"] for part in size["parts"]) == size["total_bytes"]
    assert size["total_bytes"] == files[0].stat().st_size
    assert not any(part["kind"] == "other" for part in size["parts"])
    method = data["delegation"]["methods"]["forward"]
    (delegate,) = method["delegates"]
    assert delegate["backend_id"] == family.backend_id
    assert delegate["bytes"] == len(family.data)
    assert list(delegate["compile_specs"]) == [key for key, _ in family.specs]
    assert delegate["format"] not in ("", "unreadable")
    if family.nodes is not None:
        assert method["counting"] == "payload"
        assert method["num_delegated_nodes"] == family.nodes
        assert len(delegate["nodes"]) >= 1
    for verb in ("summary", "delegation", "size"):
        text = run(verb, *files)
        assert (text.code, "Traceback" in text.err) == (0, False)
        assert verb == "size" or family.backend_id in text.out


@pytest.mark.parametrize("family", families(), ids=str)
def test_family_is_extracted_as_it_was(family: Family, tmp_path: Path) -> None:
    files = write(family, tmp_path / "in", inside=True)
    out = tmp_path / "out"
    answer = run("extract", *files, "-o", out)
    assert answer.code == 0, answer.err
    written = {path.name: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    assert written["payload.bin"] == family.data
    assert set(family.named.values()) <= set(written.values())


@pytest.mark.parametrize("family", NAMED, ids=str)
def test_named_data_is_found_beside_the_program(family: Family, tmp_path: Path) -> None:
    files = write(family, tmp_path, inside=False)
    assert len(files) == 2
    beside, alone = (run("delegation", *paths, "--format", "json") for paths in (files, files[:1]))
    assert (beside.code, alone.code) == (0, 0)
    assert valid(beside, "delegation")["data"]["methods"]["forward"]["num_delegated_nodes"] == (
        family.nodes or 0
    )
    warned = [issue["message"] for issue in valid(alone, "delegation")["issues"]]
    found = [issue["message"] for issue in valid(beside, "delegation")["issues"]]
    assert any("named data" in message or "named constants" in message for message in warned)
    assert not any("named data" in message or "named constants" in message for message in found)
    check = run("check", *files, "--format", "json")
    assert valid(check, "check")["data"]["verdict"] == "belong"
    assert check.code == 0
