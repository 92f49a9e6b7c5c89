"""Help and narrow terminals: examples that parse, sentences, columns a reader can read."""

from __future__ import annotations

import importlib
import re
import shlex
from argparse import ArgumentParser
from pathlib import Path

import pytest

from devtools_app.__main__ import main as command
from inspector import cli
from inspector.cli import VERBS, text
from inspector.cli.answer import Answer, shown
from inspector.cli.examples import EXAMPLES
from inspector.tables.rows import RowField, row_table
from inspector.units import Quantity
from tests.inspector.cli_runs import run
from tests.inspector.sessions import DATA

SHELL = re.compile(r"\s*\|\|.*$")


@pytest.mark.parametrize("verb", VERBS)
def test_examples_of_a_verb_parse_with_its_own_options(verb: str) -> None:
    module = importlib.import_module(f"inspector.cli.{verb.replace('-', '_')}")
    assert len(EXAMPLES[verb]) >= 2
    for line in EXAMPLES[verb]:
        words = shlex.split(SHELL.sub("", line))
        assert words[:2] == ["etscope", verb]
        parser = ArgumentParser(allow_abbrev=False, exit_on_error=False)
        module.add_arguments(parser)
        parser.parse_args(words[2:])


@pytest.mark.parametrize("verb", VERBS)
def test_help_of_a_verb_keeps_names_and_ends_its_sentence(verb: str) -> None:
    found = run(verb, "--help")
    assert found.code == 0
    described = found.out.split("\n\n")[1]
    assert re.fullmatch(r"[A-Z].*[.?]", described)
    assert VERBS[verb][1:].rstrip("?") in described
    assert all(line in found.out for line in EXAMPLES[verb])


def test_open_explains_itself_without_a_window(capsys: pytest.CaptureFixture[str]) -> None:
    assert command(["open", "--help"]) == 0
    assert "--watch" in capsys.readouterr().out


class _Terminal:
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


TABLE = row_table(
    (
        RowField("event"),
        RowField("share", Quantity.SHARE),
        RowField("module"),
        RowField("min", Quantity.TIME),
    ),
    [("native_call_convolution.out", 0.5, "features.12.block.3.expand", 1e6)] * 2,
)


def _rendered(width: int, monkeypatch: pytest.MonkeyPatch, stream: object) -> str:
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("NO_COLOR", "1")
    return text.render(Answer({}, tables=(shown(TABLE),)), (), stream)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("width", range(30, 90, 7))
def test_table_fits_the_terminal_and_says_what_it_left_out(
    width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = _rendered(width, monkeypatch, _Terminal())
    lines = [line for line in shown.splitlines() if not line.startswith("(")]
    assert all(len(line) <= width for line in lines)
    for title in ("module", "min"):
        assert (title in lines[0]) != (f"{title}" in shown.splitlines()[-1])


def test_least_needed_column_goes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = _rendered(52, monkeypatch, _Terminal())
    assert "module" in shown.splitlines()[0]
    assert "too narrow for min;" in shown


def test_interrupt_during_imports_is_one_line_and_130(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(_first: str) -> bool:
        raise KeyboardInterrupt

    monkeypatch.setattr("devtools_app.__main__._opens_window", interrupted)
    assert command(["summary", "model.pte"]) == 130
    assert capsys.readouterr().err == "etscope: interrupted\n"


def test_cycles_are_whole_ticks_in_columns_that_say_so() -> None:
    trace = DATA / "corpus" / "v1.5.1" / "convnet_xnnpack" / "run.etdp"
    shown = run("profile", trace, "--source-time-scale", "cycles").out
    assert shown.startswith("ticks are cycles")
    assert "mean of ticks / ticks" in shown
    assert "e+0" not in shown
    assert (
        "mean of ticks (ticks)"
        in run("profile", trace, "--source-time-scale", "cycles", "--format", "tsv").out
    )


def test_a_verb_is_one_file_and_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "lengths.py").write_text(_TOY, "utf-8")
    monkeypatch.setattr(cli, "__path__", [*cli.__path__, str(tmp_path)])
    monkeypatch.setitem(VERBS, "lengths", "how long the names of the methods are")
    monkeypatch.setitem(EXAMPLES, "lengths", ("etscope lengths model.pte",))
    folder = DATA / "corpus" / "v1.5.1" / "convnet_xnnpack"
    assert run("lengths", folder).out == "method   letters\nforward        7\n"
    assert run("lengths", folder, "--format", "csv").out == "method,letters\nforward,7\n"
    assert run("lengths", folder, "--format", "json").json["data"] == {"forward": 7}
    assert "etscope lengths model.pte" in run("lengths", "--help").out
    assert "lengths" in run("--help").out


_TOY = '''
"""lengths: how long the names of the methods are."""

from inspector.cli.answer import Answer, shown
from inspector.cli.options import add_files as add_arguments, open_files
from inspector.tables.rows import RowField, row_table
from inspector.units import Quantity


def run(options):
    rows = [(name, len(name)) for name in open_files(options).methods]
    table = row_table((RowField("method"), RowField("letters", Quantity.COUNT)), rows)
    return Answer(dict(rows), tables=(shown(table),))
'''
