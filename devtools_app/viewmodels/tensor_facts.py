"""Links from the Node panel to the tensors of the selection."""

from __future__ import annotations

from dataclasses import replace

from devtools_app.state.requests import ShowTensor
from devtools_app.viewmodels.selected_tensors import selected_tensors
from inspector.files.session import Session
from inspector.tables.facts import Fact, FactSheet, shortened
from inspector.tables.selection import Selection
from inspector.tensors.sources import TensorSource

_BEFORE = "Tensors"  # group of shapes that the values follow


def with_tensors(
    sheet: FactSheet, session: Session, method: str, selection: Selection
) -> FactSheet:
    """Return a sheet with links to the tensors of its selection; an empty one stays empty."""
    if not sheet.title:
        return sheet
    facts = [_link(one) for one in selected_tensors(session, method, selection)]
    if not facts:
        return sheet
    titles = [group.title for group in sheet.groups]
    place = titles.index(_BEFORE) + 1 if _BEFORE in titles else min(1, len(titles))
    groups = (*sheet.groups[:place], shortened("Values", facts), *sheet.groups[place:])
    return replace(sheet, groups=groups)


def _link(one: TensorSource) -> Fact:
    label = one.role or one.origin
    exact = f"{one.name}, {one.dtype} {list(one.sizes)}, {one.origin}"
    text = f"{one.name}  {one.dtype} {list(one.sizes)}"
    return Fact(
        label, text, f"{exact}: {one.missing}" if one.missing else exact, link=ShowTensor(one.key)
    )
