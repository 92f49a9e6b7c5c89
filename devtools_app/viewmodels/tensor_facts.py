"""Links from the Node panel to the tensors of the selection."""

from __future__ import annotations

from dataclasses import replace

from devtools_app.state.requests import ShowTensor
from devtools_app.viewmodels.selected_tensors import selected_tensors
from inspector.files.session import Session
from inspector.tables.facts import Fact, FactSheet, shortened
from inspector.tables.selection import Selection
from inspector.tensors.sources import TensorSource


def with_tensors(
    sheet: FactSheet, session: Session, method: str, selection: Selection
) -> FactSheet:
    """Return a sheet with links to the tensors of its selection; an empty one stays empty."""
    if not sheet.title:
        return sheet
    facts = [_link(one) for one in selected_tensors(session, method, selection)]
    if not facts:
        return sheet
    return replace(sheet, groups=(*sheet.groups, shortened("Values in Tensor", facts)))


def _link(one: TensorSource) -> Fact:
    label = one.role or one.origin
    exact = f"{one.name}, {one.dtype} {list(one.sizes)}, {one.origin}"
    text = f"{one.name}  {one.dtype} {list(one.sizes)}"
    return Fact(
        label, text, f"{exact}: {one.missing}" if one.missing else exact, link=ShowTensor(one.key)
    )
