"""The guide inside the window: sections of the packaged documents, and a search in them."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

_HOME = Path(__file__).parents[1]
# beside the packages in a checkout, inside of the package in a wheel
FOLDER = next((one for one in (_HOME / "docs", _HOME.parent / "docs") if one.is_dir()), _HOME)
FIRST = "guide"
PAGES = (FIRST, "walk-through", "glossary", "accessibility", "cli", "compare")
_HEADING = re.compile(r"#{1,3} +(.+)")
_FENCE = "```"
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_MARKS = re.compile(r"[*`|#>]+")
_NOT_SLUG = re.compile(r"[^\w\- ]")
_AROUND = 60  # characters of a hit on both sides
_MOST = 40  # hits
_STEM = 5  # letters that forms of one word share
_OF_OPTIONS = ("cli",)  # pages for those who know what they look for


@dataclass(frozen=True, slots=True)
class GuideSection:
    """A heading of a document with its text.

    Attributes:
        page: name of the document
        title: its heading
        text: Markdown without the heading
    """

    page: str
    title: str
    text: str

    @property
    def key(self) -> str:
        """Return a unique name: that of links, ``guide#graph``."""
        return f"{self.page}#{slug(self.title)}"


@dataclass(frozen=True, slots=True)
class GuideHit:
    """A section that has all words of a search.

    Attributes:
        section: the section
        snippet: where it has them, as plain text
    """

    section: GuideSection
    snippet: str


@lru_cache(maxsize=1)
def guide_sections() -> tuple[GuideSection, ...]:
    """Return the sections of all pages in order; pages that are not packaged are left out."""
    paths = [(name, FOLDER / f"{name}.md") for name in PAGES]
    texts = [(name, path.read_text("utf-8")) for name, path in paths if path.is_file()]
    return tuple(section for name, text in texts for section in sections_of(name, text))


def sections_of(page: str, text: str) -> list[GuideSection]:
    """Return the sections of a document; one without a text of its own is left out."""
    found: list[tuple[str, list[str]]] = []
    fenced = False
    for line in text.splitlines():
        fenced ^= line.startswith(_FENCE)
        heading = None if fenced else _HEADING.fullmatch(line)
        if heading is not None:
            found.append((heading[1], []))
        elif found:
            found[-1][1].append(line)
    joined = [GuideSection(page, title, "\n".join(lines).strip()) for title, lines in found]
    return [one for one in joined if one.text]


def section_of_view(title: str) -> GuideSection | None:
    """Return the section about a view: that of its name, else the first that names it."""
    own = [one for one in guide_sections() if one.page == FIRST]
    named = (one for one in own if one.title == title)
    mentioned = (one for one in own if title and f"*{title}*" in one.text)
    return next(named, None) or next(mentioned, None) or next(iter(own), None)


def section_of_link(link: str, page: str) -> GuideSection | None:
    """Return the section that a link of a page leads to, None for one that leads elsewhere."""
    path, _, part = link.partition("#")
    name = path.removesuffix(".md") or page
    own = [one for one in guide_sections() if one.page == name]
    if not part:
        return next(iter(own), None)
    return next((one for one in own if slug(one.title) == part), None)


def search_guide(text: str) -> tuple[GuideHit, ...]:
    """Return the sections that have all words of a text, those that are about them first.

    Where none has, the beginnings of long words are searched for: of "quantization" those of
    "quantize" and "quantized" as well.
    """
    words = text.casefold().split()
    return _hits(words) or _hits([word[:_STEM] for word in words])


def _hits(words: list[str]) -> tuple[GuideHit, ...]:
    if not words:
        return ()
    found: list[tuple[tuple[float, ...], GuideHit]] = []
    for section in guide_sections():
        plain = plain_text(section.text)
        title, whole = section.title.casefold(), plain.casefold()
        if all(word in title or word in whole for word in words):
            defined = f"\n| {' '.join(words)} " in section.text.casefold()
            named = max(sum(word in title for word in words), defined * (len(words) - 0.5))
            often = sum(whole.count(word) for word in words) / math.sqrt(len(whole))
            rank = (section.page in _OF_OPTIONS, -named, -often)
            found.append((rank, GuideHit(section, _snippet(plain, words))))
    found.sort(key=lambda one: one[0])
    return tuple(hit for _, hit in found[:_MOST])


def plain_text(markdown: str) -> str:
    """Return Markdown without its marks, in one line."""
    return " ".join(_MARKS.sub("", _LINK.sub(r"\1", markdown)).split())


def slug(title: str) -> str:
    """Return the part of a link that leads to a heading."""
    return _NOT_SLUG.sub("", title.lower()).strip().replace(" ", "-")


def _snippet(plain: str, words: list[str]) -> str:
    places = [at for at in (plain.casefold().find(word) for word in words) if at >= 0]
    at = min(places, default=0)
    start = max(0, at - _AROUND)
    start = plain.find(" ", start) + 1 if start else 0
    end = at + _AROUND
    return f"{'…' if start else ''}{plain[start:end].strip()}{'…' if end < len(plain) else ''}"
