"""Traces whose instructions the program does not have, and whose names drive a terminal."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from inspector.files.load import load_session
from inspector.tensors.logged_places import logged_places
from schema import etdump
from schema.etdump.build import dump
from schema.etdump.build import run as block
from schema.etdump.events import AnyEvent, DebugEvent, ProfileEvent
from tests.inspector.cli_runs import run
from tests.inspector.sessions import DATA

FOLDER = DATA / "corpus/v1.5.1/convnet_xnnpack"
NUMBERS = (-(2**31), -7, -2, -1, 1_000, 2**31 - 1)
VERBS = (("summary",), ("profile",), ("tensors",), ("trace",), ("table", "tensor-list"))


def _written(folder: Path, number: int | None = None, name: str = "") -> list[Path]:
    """Write the trace with another instruction or name for each event; return all files."""

    def changed(event: AnyEvent) -> AnyEvent:
        if name and isinstance(event, ProfileEvent):
            return replace(event, name=name)
        if number is not None and isinstance(event, DebugEvent | ProfileEvent):
            inside = event.chain_index >= 0
            return replace(event, instruction_id=number) if inside else event
        return event

    trace = etdump.decode((FOLDER / "run.etdp").read_bytes())
    runs = [
        block(one.name, [changed(event) for event in one.events if event is not None])
        for one in trace.run_data
    ]
    (folder / "run.etdp").write_bytes(etdump.encode(dump(runs)))
    others = ("model.pte", "model.etrecord", "run.debug")
    return [folder / "run.etdp", *(FOLDER / other for other in others)]


@pytest.mark.parametrize("number", NUMBERS)
def test_values_of_impossible_instructions_are_of_no_value_of_the_plan(
    number: int, tmp_path: Path
) -> None:
    files = _written(tmp_path, number)
    found = logged_places(load_session(files))
    assert len(found) == len(logged_places(load_session([FOLDER])))
    assert {one.value is None for one in found if not one.tensor.is_output} == {True}
    for verb in VERBS:
        answer = run(*verb, *files)
        assert (answer.code, " failed: " in answer.err) == (0, False), (verb, answer.err)


@pytest.mark.parametrize("name", ["\x1b[31mred", "\x07bell", "\u202eevil", "\x9b2J"])
def test_stock_table_has_no_control_characters(name: str, tmp_path: Path) -> None:
    files = _written(tmp_path, name=name)
    answer = run("inspector-cli", "--etdump_path", files[0], "--etrecord_path", files[2])
    assert answer.code == 0
    assert "\ufffd" in answer.out
    assert all(char.isprintable() or char == "\n" for char in answer.out + answer.err)
