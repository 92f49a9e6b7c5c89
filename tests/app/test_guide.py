"""The guide inside the window: sections, search, links, F1; the glossary behind it."""

from __future__ import annotations

import re

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from devtools_app.actions.keys import named_keys
from devtools_app.actions.table import MENUS
from devtools_app.qtmodels.cells import heading
from devtools_app.qtmodels.roles import TOOLTIP
from devtools_app.sample_data import LOOP
from devtools_app.viewmodels.guide_pages import (
    FIRST,
    FOLDER,
    PAGES,
    GuideSection,
    guide_sections,
    search_guide,
    section_of_link,
    section_of_view,
    sections_of,
    shown_text,
    slug,
)
from devtools_app.views import VIEWS
from devtools_app.views.guide import GuidePane
from inspector.files.load import load_session
from inspector.tables.glossary import GLOSSARY, glossary_page
from inspector.tables.registry import TABLES, TableSubject, build
from inspector.tables.table import ColumnKind
from inspector.tables.tree import Tree
from tests.app.window_views import host_of, open_sample
from tests.architecture.tree import ROOT
from tests.inspector.golden_tables import MADE_BY_TESTS, files_for

pytestmark = pytest.mark.gui


def test_pages_are_packaged() -> None:
    assert {one.page for one in guide_sections()} == set(PAGES)
    included = (ROOT / "pyproject.toml").read_text()
    for name in PAGES:
        assert (FOLDER / f"{name}.md").is_file()
        assert f'"docs/{name}.md" = "devtools_app/docs/{name}.md"' in included


def test_sections_leave_code_and_empty_headings_alone() -> None:
    text = "# Title\n\n## One\ntext\n```\n# no heading\n```\n### Two\nmore"
    found = sections_of("page", text)
    assert [one.title for one in found] == ["One", "Two"]
    assert "# no heading" in found[0].text


@pytest.mark.parametrize("view", VIEWS, ids=lambda one: one.name)
def test_every_view_has_a_section(view) -> None:
    found = section_of_view(view.title)
    assert found is not None
    assert found.title == view.title or f"*{view.title}*" in found.text


def test_search_finds_headings_before_mentions_and_all_words() -> None:
    found = search_guide("roofline")
    assert found[0].section.title.casefold() == "roofline"
    both = search_guide("minimap wheel") or search_guide("wheel zoom")
    for hit in both:
        assert "zoom" in (hit.section.title + hit.section.text).casefold()
    assert search_guide("   ") == ()


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("memroy", "Memory"),
        ("timline", "Timeline"),
        ("rooflne", "Roofline"),
        ("how do I compare two programs", "compare"),
        ("where is the roofline", "Roofline"),
    ],
)
def test_search_understands_questions_and_misspelt_words(text: str, title: str) -> None:
    assert title in [hit.section.title for hit in search_guide(text)[:3]]
    assert search_guide("xyzzy") == ()


@pytest.mark.parametrize("view", ["Node", "Jobs", "Files", "Notes"])
def test_panels_have_the_section_that_is_about_them(view: str) -> None:
    found = section_of_view(view)
    assert found is not None
    assert found.title == "The other panels"


def test_no_link_of_the_window_leads_nowhere() -> None:
    links = 0
    for section in guide_sections():
        for link in re.findall(r"(?<!!)\[[^\]]*\]\(([^)]*)\)", shown_text(section)):
            links += 1
            assert "://" in link or section_of_link(link, section.page) is not None, section.key
    assert links > 20
    lost = GuideSection(FIRST, "One", "see [this](gone.md#part), [Graph](#graph)")
    assert shown_text(lost) == "see this, [Graph](#graph)"


def test_links_lead_to_sections() -> None:
    for section in guide_sections():
        for page, part in re.findall(r"\]\(([\w-]+)\.md(?:#([\w-]+))?\)", section.text):
            if page in PAGES and part:
                found = section_of_link(f"{page}.md#{part}", section.page)
                assert found is not None, (section.key, page, part)
                assert slug(found.title) == part


def test_glossary_page_has_the_words_of_the_window() -> None:
    assert (ROOT / "docs/glossary.md").read_text() == glossary_page()


@pytest.mark.parametrize(
    "name",
    [
        name
        for name, one in TABLES.items()
        if one.subject is TableSubject.METHOD and name not in MADE_BY_TESTS
    ],
)
def test_headings_of_figures_define_them(name: str) -> None:
    plain = {"#", "delegate", "depth", "address", "line", "passes", "instruction", "index"}
    plain |= {
        "nodes",
        "instructions",
        "kernel",
        "inputs",
        "outputs",
        "first",
        "last",
        "buffer",
        "value",
    }
    session = load_session(files_for(name) if name.startswith("estimate") else LOOP[:2])
    found = build(name, session, session.methods[0])
    table = found.rows if isinstance(found, Tree) else found
    figures = [one for one in table.columns if one.kind is not ColumnKind.TEXT]
    lacking = [one.title for one in figures if one.title not in GLOSSARY]
    assert set(lacking) - plain == set()
    for column in figures:
        if column.title in GLOSSARY:
            assert GLOSSARY[column.title] in str(heading(column, TOOLTIP))


@pytest.mark.slow
def test_f1_opens_the_guide_at_the_view_in_front(make_window, qtbot) -> None:
    window = make_window()
    open_sample(window, qtbot)
    for name, title in (("memory", "Memory"), ("timeline", "Timeline")):
        window.show_view(name)
        window.activateWindow()
        QTest.keyClick(window, Qt.Key.Key_F1)
        pane = host_of(window, "guide").view
        assert isinstance(pane, GuidePane)
        assert pane.isVisible()
        assert pane.shown is not None
        assert pane.shown.title == title
    QTest.keyClicks(pane.search, "tolerance")
    assert pane.results.isVisible()
    QTest.keyClick(pane.search, Qt.Key.Key_Return)
    assert pane.page.isVisible()
    assert pane.shown.title != "Timeline"
    pane.back.click()
    assert pane.shown.title == "Timeline"


FIRST_HITS = {
    "partition": "guide: Partitions",
    "delegate": "glossary: Delegation",
    "latency": "glossary: Words",
    "quantize": "glossary: Words",
    "quantization": "guide: Numeric gap",  # of no heading: by how much of a section is about it
    "arena": "glossary: Words",
    "memory peak": "guide: Memory",
    "debug handle": "glossary: Words",
    "ETDump": "glossary: Words",
    "drift": "glossary: Words",
    "top-1": "glossary: Errors",
    "compile": "guide: Compile",
    "trace": "glossary: Times",
    "phones": "guide: On a device",
    "numeric gap": "guide: Numeric gap",
    "bisect": "guide: Bisect",
    "why not delegated": "walk-through: Why",
}


@pytest.mark.parametrize("text", FIRST_HITS)
def test_a_word_of_the_field_finds_the_section_about_it_first(text: str) -> None:
    section = search_guide(text)[0].section
    assert f"{section.page}: {section.title}" == FIRST_HITS[text]


def told(page: str, pattern: str) -> set[str]:
    """Return what a page names in the form of a pattern, across the ends of lines."""
    return set(re.findall(pattern, " ".join((FOLDER / f"{page}.md").read_text().split())))


@pytest.mark.parametrize("page", ["guide", "walk-through", "accessibility"])
def test_keys_that_the_guide_names_are_in_the_sheet_of_keys(page: str) -> None:
    modified = r"(?:(?:Ctrl|Alt|Shift)\+)*"
    named = r"F\d+|Return|Esc|Space|Tab|Del|Backspace|Menu|Left|Right|Up|Down|drag|click"
    found = told(page, rf"`({modified}(?:[A-Z\d]|[^\w`]|{named}))`")
    assert found
    assert found - named_keys() == set()


def test_menus_that_the_guide_names_are_there(make_window) -> None:
    bar = make_window().menuBar()
    titles = {
        f"{menu.text()} > {one.text()}".replace("&", "")
        for menu in bar.actions()
        for one in menu.menu().actions()
    }
    found = {
        one
        for page in ("guide", "walk-through", "accessibility", "cli")
        for one in told(page, rf"\*((?:{'|'.join(MENUS)}) > [^*]+)\*")
    }
    assert len(found) > 10
    assert found - titles == set()
