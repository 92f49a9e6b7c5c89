"""The guide inside the window: sections of the packaged documents, and a search in them."""

from __future__ import annotations

import difflib
import math
import re
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

_HOME = Path(__file__).parents[1]
# beside the packages in a checkout, inside of the package in a wheel
FOLDER = next((one for one in (_HOME / "docs", _HOME.parent / "docs") if one.is_dir()), _HOME)
FIRST = "guide"
_OF_OPTIONS = (  # pages for those who know what they look for
    "cli",
    "compiler",
    "backends",
    "toolchains",
    "python-api",
    "json-contract",
)
PAGES = (FIRST, "walk-through", "glossary", "accessibility", "compare", *_OF_OPTIONS)
_HEADING = re.compile(r"#{1,3} +(.+)")
_FENCE = "```"
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_LINKED = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)]*)\)")
_WORD = re.compile(r"[^\W\d_]{3,}")
_MARKS = re.compile(r"[*`|#>]+")
_NOT_SLUG = re.compile(r"[^\w\- ]")
_AROUND = 60  # characters of a hit on both sides
_MOST = 40  # hits
_STEM = 5  # letters that forms of one word share
_FILLERS = {
    "a",
    "are",
    "can",
    "do",
    "how",
    "i",
    "in",
    "is",
    "my",
    "of",
    "the",
    "to",
    "what",
    "where",
}
_ALIKE = 0.8  # of a word that is misspelt, as difflib counts


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
    """Return the section about a view: that of its name, else of a line or a sentence about it."""
    own = [one for one in guide_sections() if one.page == FIRST]
    named = (one for one in own if one.title == title)
    begun = (one for one in own if title and f"\n*{title}*" in f"\n{one.text}")
    mentioned = (one for one in own if title and f"*{title}*" in one.text)
    first = (next(found, None) for found in (named, begun, mentioned, iter(own)))
    return next(filter(None, first), None)


def shown_text(section: GuideSection) -> str:
    """Return the Markdown of a section; a link to what is not in the guide is plain text."""

    def kept(link: re.Match[str]) -> str:
        leads = "://" in link[2] or section_of_link(link[2], section.page) is not None
        return link[0] if leads else link[1]

    return _LINKED.sub(kept, section.text)


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
    "quantize" and "quantized" as well. Then misspelt words are taken for the nearest ones, and
    sections with the most of the words are found.
    """
    words = text.casefold().split()
    words = [word for word in words if word not in _FILLERS] or words
    found = _hits(words) or _hits([word[:_STEM] for word in words])
    return found or _hits([near for word in words if (near := _nearest(word))], least=1)


def _hits(words: list[str], least: int = 0) -> tuple[GuideHit, ...]:
    """Return the sections with some words.

    Args:
        words: in lower case
        least: how many of them a section has to have; 0 for all
    """
    if not words:
        return ()
    found: list[tuple[tuple[float, ...], GuideHit]] = []
    for section in guide_sections():
        plain = plain_text(section.text)
        title, whole = section.title.casefold(), plain.casefold()
        there = [word for word in words if word in title or word in whole]
        if len(there) >= (least or len(words)):
            defined = f"\n| {' '.join(words)} " in section.text.casefold()
            named = max(sum(word in title for word in there), defined * (len(words) - 0.5))
            often = sum(whole.count(word) for word in there) / math.sqrt(len(whole))
            rank = (-len(there), section.page in _OF_OPTIONS, -named, -often)
            found.append((rank, GuideHit(section, _snippet(plain, there))))
    found.sort(key=lambda one: one[0])
    return tuple(hit for _, hit in found[:_MOST])


def _nearest(word: str) -> str:
    """Return a word of the guide that is nearest to one that may be misspelt, empty for none."""
    known = _words()
    if any(one.startswith(word) for one in known):
        return word
    return next(iter(difflib.get_close_matches(word, known, 1, _ALIKE)), "")


@lru_cache(maxsize=1)
def _words() -> tuple[str, ...]:
    """Return the words of all pages, the most frequent first."""
    texts = (f"{one.title} {plain_text(one.text)}".casefold() for one in guide_sections())
    return tuple(word for word, _ in Counter(_WORD.findall(" ".join(texts))).most_common())


@lru_cache(maxsize=1024)
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
