"""The harness itself: the stock tool answers, in another process, and its end is survived."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.oracle import facts
from tests.oracle.client import Oracle

pytestmark = pytest.mark.interop


def test_session_with_trace_and_record_has_every_part(oracle: Oracle, corpus: Path) -> None:
    facts = oracle(corpus / "v1.5.1" / "mm_portable")
    assert facts["files"].keys() == {"program", "etrecord", "etdump", "debug_buffer"}
    assert [part for part in facts if facts[part] is None] == ["bundled", "data"]
    names = [event["name"] for event in facts["inspector"]["blocks"][-1]["events"]]
    assert names.count("native_call_mm.out") == 2
    assert facts["rebuilt"]["same_program"]
    assert facts["rebuilt"]["delegation"]["forward"]["num_non_delegated_nodes"] == 5


def test_session_the_stock_tool_refuses_reports_its_error(oracle: Oracle, corpus: Path) -> None:
    facts = oracle(corpus / "special" / "dynamic")
    assert facts["inspector"]["error_type"] == "CalledProcessError"
    assert "error" not in facts["record"]


def test_run_same_program_twice_gives_the_same_outputs(oracle: Oracle, corpus: Path) -> None:
    program = corpus / "v1.5.1" / "convnet_xnnpack" / "model.pte"
    first = oracle.ask("run", path=program, seed=1)
    assert first["forward"]["outputs"][0]["shape"] == [1, 10]
    assert oracle.ask("run", path=program, seed=1) == first
    assert oracle.ask("run", path=program, seed=2) != first


def test_ask_after_the_process_died_starts_another(tmp_path: Path, corpus: Path) -> None:
    program = corpus / "v1.5.1" / "mm_portable" / "model.pte"
    with Oracle() as own:
        process = own.server.start()
        process.kill()
        process.wait()
        dead = own.ask("program", path=program)
        assert dead["error_type"] == "ProcessEnded"
        assert own.ask("program", path=program)["program"]["version"] == 0


def test_ask_changed_file_is_not_answered_from_the_cache(tmp_path: Path, corpus: Path) -> None:
    program = tmp_path / "model.pte"
    program.write_bytes((corpus / "v1.5.1" / "mm_portable" / "model.pte").read_bytes())
    with Oracle(tmp_path / "cache") as own:
        assert "program" in own.ask("program", path=program)
        program.write_bytes(b"not a program")
        assert "error" in own.ask("program", path=program)


def test_facts_module_prints_json(
    corpus: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = corpus / "payloads"  # holds no session: every part is absent, nothing is loaded
    monkeypatch.setattr("sys.argv", ["facts", str(folder)])
    assert facts.main() == 0
    assert json.loads(capsys.readouterr().out)["files"] == {}


@pytest.mark.parametrize("name", ["lstm_portable", "xnnpack_split", "map_rows"])
def test_committed_facts_equal_what_the_stock_tool_says_now(
    oracle: Oracle, extra: Path, name: str
) -> None:
    committed = json.loads((extra / name / "stock.json").read_text("utf-8"))
    rebuilt = oracle(extra / name)["rebuilt"]
    # A record forgets the names of the inputs (`x` comes back as `arg_0`): texts with names differ.
    numbers = ("num_delegated_subgraphs", "num_delegated_nodes", "by_operator", "summary")
    delegation, kept = rebuilt["delegation"]["forward"], committed["delegation"]["forward"]
    assert [delegation[key] for key in numbers] == [kept[key] for key in numbers]
    rows = committed["memory_trace"]["forward"]
    expanded = [
        {**{key: row[key] for key in ("pid", "ts", "dur")}, "tid": tid}
        for row in (rows if isinstance(rows, list) else [])
        for tid in range(row["first_tid"], row["last_tid"] + 1)
    ]
    found = rebuilt["memory_trace"]["forward"]["offsets"]
    if isinstance(found, dict):  # no plan in a program of control flow alone: refused both times
        assert found == rows
        return
    keys = ("pid", "ts", "dur", "tid")
    assert sorted(tuple(e[k] for k in keys) for e in expanded) == sorted(
        tuple(e[k] for k in keys) for e in found
    )
    assert expanded
