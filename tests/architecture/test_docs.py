"""The documents: links lead somewhere, every view and every verb is described, keys exist."""

from __future__ import annotations

import re

import pytest

from devtools_app.actions.table import ACTIONS
from devtools_app.views import VIEWS
from devtools_app.views.spec import Area
from inspector.cli import VERBS
from tests.architecture.tree import ROOT, tracked_files

LINK = re.compile(r"\[[^\]]*\]\(([^)#]+)(?:#[^)]*)?\)")
PAGES = [path for path in tracked_files() if path.suffix == ".md"]


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_of_a_page_lead_to_files(page) -> None:
    targets = [link for link in LINK.findall(page.read_text()) if "://" not in link]
    assert [link for link in targets if not (page.parent / link).exists()] == []


def test_guide_describes_every_view() -> None:
    guide = (ROOT / "docs/guide.md").read_text()
    headings = set(re.findall(r"^## (.*)$", guide, re.MULTILINE))
    centre = {view.title for view in VIEWS if view.area is Area.CENTRE}
    assert centre <= headings
    others = {view.title for view in VIEWS} - headings
    assert {title for title in others if f"*{title}*" not in guide} == set()


def test_guide_names_keys_that_exist() -> None:
    guide = (ROOT / "docs/guide.md").read_text()
    known = {key for action in ACTIONS for key in action.keys}
    named = set(re.findall(r"`((?:Ctrl|Alt|F\d)[+\w…]*)`", guide))
    of_views = {"Ctrl+G", "Ctrl+C", "Ctrl+Return", "Ctrl+1…0", "F3"}
    windows = {key for key in named if key.startswith(("Ctrl", "Alt", "F"))}
    assert windows - known - of_views == set()


def test_readme_lists_every_verb() -> None:
    readme = (ROOT / "README.md").read_text()
    assert {verb for verb in VERBS if f"`{verb}" not in readme} == set()


TEST = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_tests_that_a_page_names_exist(page) -> None:
    named = TEST.findall(page.read_text())
    missing = [f"{f}::{t}" for f, t in named if f"\ndef {t}(" not in (ROOT / f).read_text()]
    assert missing == []


def test_each_defect_of_the_numbers_has_a_test() -> None:
    rows = re.findall(r"^\| (D\w+) \|(.*)$", (ROOT / "docs/numbers.md").read_text(), re.MULTILINE)
    assert [name for name, _ in rows] == [
        *(f"D{number}" for number in range(1, 11)),
        "D10b",
        *(f"D{number}" for number in range(11, 19)),
    ]
    assert [name for name, row in rows if not TEST.findall(row)] == []
