"""The links of a block's events, deduplicated: one code per event into the distinct links."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inspector.files.session import Session
from inspector.join.links import BlockLinks, Link, link_block
from inspector.join.methods import FRAMEWORK
from inspector.trace.blocks import Block
from inspector.trace.event_kinds import inside_delegates
from inspector.trace.group_keys import pack, ranks
from schema.objects.identity_cache import identity_cache

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
# facts that determine the link of an event
_NOTHING, _ALIKE, _NUMBER, _IDENTIFIER, _EVENT = range(5)


@dataclass(frozen=True, slots=True, eq=False)
class LinkCodes:
    """The links of a block.

    Attributes:
        links: different ones, though two may be equal
        codes: index into links of each event

    Shapes: codes int64[events]
    """

    links: tuple[Link, ...]
    codes: Ints


@identity_cache
def link_codes(session: Session, block: Block) -> LinkCodes:
    """Return ``BlockLinks.link`` of every event, computed once for equal events."""
    links = link_block(session, block)
    layout = block.layout
    depends = _depends(links, block)
    number = np.where(np.isin(depends, (_NUMBER, _IDENTIFIER)), layout.instruction, 0)
    number = np.where(depends == _EVENT, np.arange(len(block)), number)
    named = depends == _IDENTIFIER
    integer = np.where(named, layout.delegate_int, 0)
    text = np.where(named, layout.delegate_str, 0)
    inner = inside_delegates(block)
    codes, first = ranks(pack(depends, inner, number, integer, text))
    return LinkCodes(tuple(links.link(event) for event in first.tolist()), codes)


def shown_texts(block: Block) -> Ints:
    """Return for each event the index of its name in the strings; -1 if unnamed or an integer."""
    layout = block.layout
    texts = np.where(layout.delegate_str >= 0, layout.delegate_str, layout.name)
    return np.where(layout.delegate_int != -1, -1, texts)


def texts_among(block: Block, texts: Ints, names: Collection[str]) -> Mask:
    """Return which string indices refer to one of the names."""
    used, which = np.unique(texts, return_inverse=True)
    hit = [number >= 0 and block.strings[number] in names for number in used.tolist()]
    return np.array(hit, np.bool_)[which]


def _depends(links: BlockLinks, block: Block) -> Ints:
    layout = block.layout
    inner = inside_delegates(block)
    known = np.full(len(block), links.plan is not None)
    recorded = np.isin(layout.instruction, list(links.delegates))
    if links.plan is None:
        known = recorded | np.isin(layout.instruction, list(links.handles))
    own = np.isin(np.arange(len(block)), list(links.payloads))
    of_inner = np.select(
        [recorded, own, known], [np.where(own, _EVENT, _IDENTIFIER), _EVENT, _NUMBER], _ALIKE
    )
    found = np.where(inner, of_inner, np.where(known, _NUMBER, _ALIKE))
    framework = texts_among(block, shown_texts(block), FRAMEWORK)
    nothing = (layout.chain < 0) | (layout.instruction == -1) | framework
    return np.where(nothing, _NOTHING, found)
