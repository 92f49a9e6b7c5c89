"""The stock tool on anonymised copies: it reads the record and joins the trace with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from inspector.export.anonymise import anonymise
from tests.inspector.sessions import DATA, session
from tests.oracle.client import Oracle

pytestmark = pytest.mark.interop
NAMES = (
    "corpus/v1.5.1/convnet_xnnpack",
    "corpus/v1.5.1/tinygpt_portable",
    "corpus/special/xnnpack_two_delegates",
    "extra/kv_cache",
    "extra/external_weights",
    "extra/xnnpack_8da4w",
)
LONE = ("records/lowered.etrecord", "records/many_kinds.etrecord", "records/branches.etrecord")
KEPT = (
    *("name", "raw", "op_types", "delegate_debug_identifier", "debug_handles", "num_outputs"),
    *("is_delegated_op", "delegate_backend_name", "instruction_id"),
)


def _copied(name: str, folder: Path) -> None:
    for file in anonymise(session(DATA / name)):
        (folder / file.name).write_bytes(file.data)


@pytest.mark.parametrize("name", NAMES)
def test_copy_is_joined_by_the_stock_inspector(name: str, tmp_path: Path, oracle: Oracle) -> None:
    _copied(name, tmp_path)
    answers: list[list[tuple[Any, ...]]] = []
    for folder in (DATA / name, tmp_path):
        paths = {"etdump": folder / "run.etdp", "etrecord": folder / "model.etrecord"}
        facts = oracle.ask("inspector", **paths)
        assert "error" not in facts, facts
        events = [event for block in facts["blocks"] for event in block["events"]]
        answers.append([tuple(event[key] for key in KEPT) for event in events])
    assert answers[0] == answers[1]
    assert any(event[2] for event in answers[0])


@pytest.mark.parametrize("name", [*NAMES, *LONE])
def test_copy_is_read_by_the_stock_parser(name: str, tmp_path: Path, oracle: Oracle) -> None:
    _copied(name, tmp_path)
    source = DATA / name if name.endswith(".etrecord") else DATA / name / "model.etrecord"
    before = oracle.ask("record", path=source)
    after = oracle.ask("record", path=tmp_path / "model.etrecord")
    assert "error" not in before, before
    assert "error" not in after, after
    assert list(after["programs"]) == list(before["programs"])
    for program, facts in after["programs"].items():
        other = before["programs"][program]
        counts = [{**one["delegation"], "formatted_graph": ""} for one in (facts, other)]
        assert counts[0] == counts[1]
        targets = [node["target"] for node in facts["nodes"] if node["op"] == "call_function"]
        assert targets == [n["target"] for n in other["nodes"] if n["op"] == "call_function"]
        assert len(facts["state_dict"]) == len(other["state_dict"])
        assert len(facts["constants"]) == len(other["constants"])
    for key in ("debug_handle_map", "delegate_map", "instruction_id_to_num_outs_map"):
        assert after[key] == before[key]
