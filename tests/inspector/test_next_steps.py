"""What to do next: actions for what is slow, what is missing, and what was not measured."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from devtools_app.sample_data import LOOP
from inspector.files.language_model import no_language_model
from inspector.files.load import load_session
from inspector.files.session import Session
from inspector.findings.next_steps import (
    CHANGE_HERE,
    CHANGE_WITH_RECORD,
    MOST,
    NextAction,
    change_words,
    next_steps,
)
from inspector.tables.registry import build
from schema.program import decode, encode
from tests.inspector.sessions import DATA

NET = DATA / "corpus/v1.5.1/convnet_xnnpack"


def opened(*names: str) -> Session:
    return load_session([str(NET / name) for name in names])


def actions(session: Session) -> list[NextAction]:
    return [one.action for one in next_steps(session)]


def test_slow_variant_ends_in_changes_with_what_they_save() -> None:
    session = load_session(LOOP[2:])
    found = next_steps(session)
    assert len(found) == MOST
    assert [one.action for one in found[:2]] == [NextAction.TRY, NextAction.TRY]
    assert found[0].finding is not None
    assert found[0].finding.edits
    assert "saves" in found[0].brings
    assert found[0].command.startswith("etscope compile --recipe ")
    assert change_words(session) == CHANGE_HERE


def test_what_costs_and_has_no_edit_is_shown() -> None:
    found = next_steps(load_session(LOOP[:2]))
    assert found[0].action is NextAction.SHOW
    assert found[0].view == "graph"
    assert found[0].brings.startswith("saves ")
    assert NextAction.VALUES in [one.action for one in found]


def test_program_alone_is_run_and_completed() -> None:
    session = opened("model.pte")
    assert actions(session)[:2] == [NextAction.RUN, NextAction.OPEN]
    run = next_steps(session)[0]
    assert run.command.startswith("etscope run ")
    assert run.view == "run"
    assert change_words(session) == CHANGE_WITH_RECORD


def test_program_with_record_is_run() -> None:
    session = opened("model.pte", "model.etrecord")
    assert actions(session)[0] is NextAction.RUN
    assert NextAction.OPEN not in actions(session)
    assert change_words(session) == CHANGE_HERE


def test_program_with_trace_wants_its_record_and_leads_to_what_is_slow() -> None:
    session = opened("model.pte", "run.etdp")
    found = next_steps(session)
    assert NextAction.OPEN in [one.action for one in found]
    assert "ETRecord" in next(one.text for one in found if one.action is NextAction.OPEN)
    assert all(one.brings for one in found)
    assert not [one for one in found if one.action is NextAction.TRY]  # no recipe to change


@pytest.mark.parametrize("name", ["run.etdp", "model.etrecord"])
def test_files_without_a_program_want_it_first(name: str) -> None:
    session = opened(name)
    assert actions(session)[0] is NextAction.OPEN
    assert "(.pte)" in next_steps(session)[0].text


def test_record_alone_is_compiled_by_its_recipe() -> None:
    session = opened("model.etrecord")
    assert actions(session)[:2] == [NextAction.OPEN, NextAction.COMPILE]
    assert len(next_steps(session)) == MOST
    step = next_steps(session)[1]
    assert step.command.startswith("etscope compile --recipe ")
    assert step.command.endswith("model.etrecord -o compiled")
    assert NextAction.COMPILE not in actions(opened("run.etdp"))  # of no known recipe


def test_variant_that_was_not_measured_is_compared() -> None:
    session = load_session(LOOP[:2])
    found = next_steps(session, beside="B keyword_spotter_changed")
    (compared,) = [one for one in found if one.action is NextAction.COMPARE]
    assert "B keyword_spotter_changed" in compared.text
    assert compared.view == "compare"


def test_values_that_were_compared_are_not_offered_again() -> None:
    session = opened("model.pte", "model.etrecord", "run.etdp")
    assert NextAction.VALUES in actions(session)
    later = next_steps(session, values_compared=True)
    assert NextAction.VALUES not in [one.action for one in later]


def test_table_has_the_same_actions() -> None:
    session = opened("model.pte")
    table = build("next-steps", session)
    assert [table.text(row, 0) for row in range(table.length)] == [
        one.text for one in next_steps(session)
    ]


@pytest.mark.parametrize("fact", ["get_max_seq_len", "get_vocab_size", "get_nothing"])
def test_language_model_generates_text(tmp_path: Path, fact: str) -> None:
    program = decode((NET / "model.pte").read_bytes())
    plans = (*program.plans, replace(program.plans[0], name=fact))
    path = tmp_path / "model.pte"
    path.write_bytes(encode(replace(program, table=replace(program.table, execution_plan=plans))))
    found = next_steps(load_session([str(path)]))[0]
    if fact == "get_nothing":
        assert found.action is NextAction.RUN
        return
    assert found.action is NextAction.GENERATE
    assert found.view == "generate"
    assert found.command == f"etscope llm run {path} --prompt 'Once upon a time'"


@pytest.mark.parametrize("names", [["token_embedding", "text_decoder"], ["token_embedding", "x"]])
def test_program_that_reads_embeddings_generates_text(names: list[str]) -> None:
    program = decode((NET / "model.pte").read_bytes())
    plans = [replace(program.plans[0], name=one) for one in (*names, "get_max_seq_len")]
    found = replace(program, table=replace(program.table, execution_plan=tuple(plans)))
    assert (not no_language_model(found)) is ("text_decoder" in names)
