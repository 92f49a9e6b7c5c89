"""The packaged sample: two variants with all that the views show, free of the machine's paths."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from devtools_app.sample_data import LOOP, MODULE
from inspector.check.session import BELONG, check_session
from inspector.compare.sessions import compare_sessions
from inspector.files.load import load_session
from inspector.files.session import Session
from inspector.files.session_groups import split_sessions
from inspector.files.stage_files import session_stages
from inspector.graph.model_graph import model_graph
from inspector.graph.source import find_source, user_frame
from inspector.memory.measured import measured_memory
from inspector.profile.methods import time_of
from inspector.recipes.session_recipe import session_recipe
from inspector.tables.verdicts import known_verdicts

PLACES = re.compile(rb"/(?:tmp|root|home|Users|work)/|site-packages")


@pytest.fixture(scope="module")
def variants() -> list[Session]:
    return [load_session(paths) for paths in split_sessions(LOOP)]


def test_sample_has_recipe_stages_verdicts_clean_times_and_values(variants: list[Session]) -> None:
    assert len(variants) == 2
    for one in variants:
        assert check_session(one).verdict == BELONG
        assert not one.all_issues()
        found = session_recipe(one)
        assert not found.unknown
        assert Path(found.recipe.job.source.path).resolve() == MODULE
        assert known_verdicts(one, "forward")
        assert session_stages(one).log is not None
        time = time_of(one, "forward")
        assert time is not None
        assert time.bare is not None
        assert not one.times_with_values
        assert one.debug_buffer is not None
        assert measured_memory(one, "forward")


def test_source_lines_of_the_sample_are_found(variants: list[Session]) -> None:
    for one in variants:
        graph = model_graph(one, "forward")
        assert graph is not None
        frames = [user_frame(node.node.stack_trace) for node in graph.nodes]
        files = {frame.file for frame in frames if frame is not None}
        assert {find_source(file, one) for file in files} == {MODULE}


def test_sample_names_no_place_of_the_machine_it_was_recorded_on() -> None:
    below = (path for path in MODULE.parent.rglob("*") if path.is_file())
    paths = [path for path in below if path.parent.name != "__pycache__"]
    assert len(paths) > 10
    assert not [path.name for path in paths if PLACES.search(path.read_bytes())]


def test_variants_of_the_sample_differ_in_one_rule(variants: list[Session]) -> None:
    found = compare_sessions(variants)
    assert found.problems == ()
    (change,) = found.recipes
    assert (change.field, change.new) == ("rules.deny_ops", "aten.mul.Tensor")
    assert found.owners
