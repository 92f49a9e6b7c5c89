"""The user's editor is started with words, never through a shell."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from devtools_app.state.external_editor import EditorError, default_template, editor_command

HERE = Path(__file__)


def test_editor_command_fills_in_after_splitting():
    file = Path("/tmp/a b; rm -rf $HOME/`x`.py")
    found = editor_command(f"'{sys.executable}' --goto {{file}}:{{line}} -n", file, 7)
    assert found == [sys.executable, "--goto", f"{file}:7", "-n"]


def test_editor_command_without_place_gets_the_file_last():
    assert editor_command(f"'{sys.executable}' -w", HERE, 1)[-1] == str(HERE)


def test_editor_command_takes_braces_in_names_as_they_are():
    file = Path("/tmp/{line}.py")
    assert editor_command(f"'{sys.executable}' {{file}}", file, 3)[-1] == "/tmp/{line}.py"


def test_editor_line_is_at_least_one():
    assert editor_command(f"'{sys.executable}' +{{line}} {{file}}", HERE, -4)[1] == "+1"


@pytest.mark.parametrize(
    ("template", "words"),
    [
        ("", "no editor"),
        ("   ", "no editor"),
        ("'open", "cannot be read"),
        ("no-such-editor {file}", "not installed"),
    ],
)
def test_editor_command_that_cannot_work_is_refused(template, words):
    with pytest.raises(EditorError, match=words):
        editor_command(template, HERE, 1)


def test_default_template_follows_visual():
    assert default_template({"VISUAL": "/usr/bin/kate -b"}).startswith("kate")
    assert isinstance(default_template({"VISUAL": "'"}), str)
