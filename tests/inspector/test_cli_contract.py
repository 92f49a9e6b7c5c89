"""Every verb on every committed file, in every format: exit code, schema, plain tables."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest

from inspector.cli.main import VERBS
from tests.inspector.cli_runs import (
    FORMATS,
    LONE,
    READING,
    SCHEMAS,
    SESSIONS,
    loaded_once,
    run,
    valid,
)
from tests.inspector.sessions import DATA, label

pytestmark = pytest.mark.slow

KINDS = (
    DATA / "extra/external_weights/model.pte",
    DATA / "extra/external_weights/model.ptd",
    DATA / "extra/bundled_cases/model.bpte",
    DATA / "extra/external_weights/model.etrecord",
    DATA / "extra/external_weights/run.etdp",
    DATA / "extra/external_weights/run.debug",
)


@pytest.fixture(autouse=True)
def _shared(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded_once(monkeypatch)


@pytest.mark.parametrize("verb", READING)
@pytest.mark.parametrize("path", [*SESSIONS, *LONE, *KINDS], ids=label)
def test_verb_on_any_files_answers_in_every_format(path: Path, verb: str) -> None:
    for form in FORMATS:
        answer = run(verb, path, "--format", form)
        assert (answer.code, answer.err) == (0, "")
        assert "\x1b" not in answer.out
        if form == "json":
            tree = valid(answer, verb)
            assert "error" not in tree
            assert tree["inputs"]
        elif form in ("tsv", "csv") and answer.out:
            rows = list(
                csv.reader(io.StringIO(answer.out), delimiter="\t" if form == "tsv" else ",")
            )
            assert {len(row) for row in rows} == {len(rows[0])}


@pytest.mark.parametrize("path", [*SESSIONS, *KINDS], ids=label)
def test_diff_with_itself_finds_nothing(path: Path) -> None:
    answer = run("diff", path, path, "--format", "json")
    assert answer.code == 0
    tree = valid(answer, "diff")
    assert tree["data"]["different"] is False
    assert all(change["area"] == "time" for change in tree["data"]["changes"])


@pytest.mark.parametrize("path", [*SESSIONS, *LONE, *KINDS], ids=label)
def test_extract_lists_what_it_wrote(path: Path, tmp_path: Path) -> None:
    target = tmp_path / "out"
    answer = run("extract", path, "-o", target, "--format", "json")
    assert (answer.code, answer.err) == (0, "")
    files = valid(answer, "extract")["data"]["files"]
    written = {path.relative_to(target).as_posix() for path in target.rglob("*") if path.is_file()}
    assert {file["path"] for file in files} == written
    for file in files:
        size = (target / file["path"]).stat().st_size
        if file["path"].endswith(".npy"):  # bytes are those of the numbers
            size = np.load(target / file["path"]).nbytes
        assert size == file["bytes"], file["path"]


@pytest.mark.parametrize("path", [*SESSIONS, *LONE], ids=label)
def test_stock_cli_form_prints_a_table(path: Path) -> None:
    dump = path / "run.etdp" if path.is_dir() else path
    if dump.suffix != ".etdp" or not dump.exists():
        pytest.skip("no trace")
    record = path / "model.etrecord"
    more = ("--etrecord_path", record) if record.exists() else ()
    answer = run("inspector-cli", "--etdump_path", dump, *more)
    assert (answer.code, answer.err) == (0, "")
    assert "event_name" in answer.out
    valid(run("inspector-cli", "--etdump_path", dump, *more, "--format", "json"), "inspector-cli")


def test_model_explorer_text_is_the_file_itself() -> None:
    folder = DATA / "corpus/v1.5.1/convnet_xnnpack"
    tree = json.loads(run("export", folder).out)
    assert tree == run("export", folder, "--format", "json").json["data"]
    for graph in tree["graphs"]:
        ids = {node["id"] for node in graph["nodes"]}
        assert len(ids) == len(graph["nodes"]) > 0
        for node in graph["nodes"]:
            assert {edge["sourceNodeId"] for edge in node["incomingEdges"]} <= ids


def test_every_verb_has_a_schema_and_no_schema_is_left_over() -> None:
    names = {path.stem for path in SCHEMAS.glob("*.json")}
    assert names == {*VERBS, "envelope"}


def test_schema_refuses_what_the_contract_forbids() -> None:
    tree = run("size", KINDS[0], "--format", "json").json
    from tests.inspector.cli_runs import validator

    assert validator("size").is_valid(tree)
    tree["data"]["parts"][0]["kind"] = "other"
    assert not validator("size").is_valid(tree)
    assert not validator("size").is_valid({**tree, "data": {}, "verb": "profile"})
    assert not validator("size").is_valid({**tree, "data": {}})
