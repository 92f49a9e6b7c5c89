"""Tokens of a text in a table."""

from __future__ import annotations

import pytest

from inspector.tables.generation import token_table


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a b", "a b"),
        ("\n", r"\n"),
        ("\r\n\t", r"\r\n\t"),
        ("é\x00", r"é\x00"),
        ("\ufffd", "\ufffd"),
    ],
)
def test_a_token_without_letters_is_shown_by_its_escape(text: str, shown: str) -> None:
    numbers = dict.fromkeys(("position", "token", "max_abs", "kl", "margin", "loss"), 0.0)
    row = {**numbers, "text": text, "top1": True, "reference_loss": None}
    table = token_table([row])
    column = next(one for one in table.columns if one.title == "text")
    assert column.cell(0) == shown
