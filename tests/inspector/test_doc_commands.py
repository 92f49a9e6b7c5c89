"""The commands of README, documents and help are such that the command line takes them; those of
the walk-through are run."""

from __future__ import annotations

import argparse
import importlib
import json
import re
import shlex
import shutil
from pathlib import Path

import pytest

from inspector.cli.examples import EXAMPLES
from inspector.cli.main import VERBS
from inspector.files.load import load_session
from tests.architecture.tree import ROOT
from tests.inspector.cli_runs import run

PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
WINDOW = ("open", "screenshot")  # verbs of the window's package
WALK = ROOT / "docs" / "walk-through.md"
SAMPLE = ROOT / "devtools_app" / "sample_data" / "demo" / "keyword_spotter.py"
SPAN = re.compile(r"`(etscope [a-z][a-z-]* [^`…]+)`")  # in a sentence, often without its files
LINE = re.compile(r"^(?: {4}|\$ )?(etscope .+)$", re.MULTILINE)


def split(line: str) -> list[str]:
    """Return the words behind `etscope`, without what a shell does behind the command."""
    words = shlex.split(line, comments=True)
    ends = [place for place, word in enumerate(words) if word in ("||", "|", "&&", ";", ">")]
    return words[1 : ends[0] if ends else None]


def lines(page: Path) -> list[list[str]]:
    """Return the commands that stand in lines of their own."""
    text = re.sub(r"(?: \\)?\n {2}(?: {6})?(?=\S)", " ", page.read_text("utf-8"))
    return [split(line) for line in LINE.findall(text)]


def parser_of(verb: str) -> argparse.ArgumentParser:
    module = importlib.import_module(f"inspector.cli.{verb.replace('-', '_')}")
    parser = argparse.ArgumentParser(exit_on_error=False, allow_abbrev=False)
    module.add_arguments(parser)
    return parser


def refusal(words: list[str]) -> str:
    """Return why the command line does not take a command, empty where it does."""
    verb, *rest = words
    if verb not in VERBS:
        return "" if len(words) == 1 or verb in WINDOW else f"unknown verb {verb}"
    try:
        parser_of(verb).parse_args(rest)
    except (argparse.ArgumentError, SystemExit) as error:
        return str(error)
    return ""


def unknown_options(line: str) -> set[str]:
    """Return the options of a mention that its verb does not have."""
    verb, *rest = re.split(r"[\s=\[\]|]+", line)[1:]
    if verb not in VERBS:
        return {verb} - set(WINDOW)
    known = parser_of(verb)._option_string_actions
    return {word for word in rest if word.startswith("-") and len(word) > 1} - set(known)


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_commands_of_a_page_are_taken(page: Path) -> None:
    found = {" ".join(words): refusal(words) for words in lines(page)}
    assert {command: why for command, why in found.items() if why} == {}
    mentions = {span: unknown_options(span) for span in SPAN.findall(page.read_text("utf-8"))}
    assert {span: unknown for span, unknown in mentions.items() if unknown} == {}


def test_commands_of_the_help_are_taken_and_of_their_verb() -> None:
    found = {line: shlex.split(line)[1:] for lines in EXAMPLES.values() for line in lines}
    assert {line: why for line, words in found.items() if (why := refusal(words))} == {}
    assert EXAMPLES.keys() <= VERBS.keys()


def test_a_wrong_command_is_refused() -> None:
    assert refusal(["summary", "a.pte", "--nothing"])
    assert refusal(["sumary", "a.pte"])


@pytest.mark.slow
def test_commands_of_the_walk_through_run_one_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(SAMPLE, tmp_path)
    monkeypatch.chdir(tmp_path)
    first, *rest = lines(WALK)
    assert run(*first).code == 0
    # What Ctrl+R leaves: the recipe without the rule against convolutions.
    recipe = json.loads(Path("keyword_spotter/recipe.json").read_text("utf-8"))
    recipe["job"]["rules"]["deny_ops"] = []
    variant = Path("keyword_spotter/model_variants/keyword_spotter_1/recipe.json")
    variant.parent.mkdir(parents=True)
    variant.write_text(json.dumps(recipe), "utf-8")
    verbs = []
    for words in rest:
        if words[0] in VERBS:
            answer = run(*words)
            assert answer.code == 0, (words, answer.err)
            verbs.append(words[0])
        elif not words[0].endswith(".json"):  # what the window opens
            assert load_session([words[0]]).program is not None
    assert verbs == ["sweep", "compile", "compare", "gate"]
