"""Settings with an equals sign: one grammar, one sentence for every error."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schema.recipe.assignments import (
    AssignmentError,
    parse_assignment,
    parse_path,
    parse_setting,
    split_pair,
)

MODES = ("static", "4w", "4w:group=32")
assignment = partial(parse_assignment, what="MODE", values=MODES)
setting = partial(parse_setting, form="NAME=VALUE of the config", names=("a", "b"))
path = partial(parse_path, form="GROUP.NAME=VALUE", separator=".")


@pytest.mark.parametrize(
    ("parse", "text", "found"),
    [
        (assignment, "a=b=static", ("a=b", "static")),
        (assignment, "layer=4w:group=32", ("layer", "4w:group=32")),
        (setting, "a=b=c", ("a", "b=c")),
        (setting, "b=", ("b", "")),
        (path, "model.cache.size=1=2", (["model", "cache", "size"], "1=2")),
    ],
)
def test_name_and_value_are_those_of_the_form(
    parse: Callable[[str], object], text: str, found: object
) -> None:
    assert parse(text) == found


@pytest.mark.parametrize(
    ("parse", "text", "words"),
    [
        (assignment, "a", "expected NAME=MODE, found no '='; available: static, 4w, 4w:group=32"),
        (assignment, "=static", "expected NAME=MODE, found no NAME; available: static"),
        (assignment, "a=fast", "expected NAME=MODE, found 'fast'; available: static"),
        (setting, "c=1", "expected NAME=VALUE of the config, found 'c'; available: a, b"),
        (path, "model=1", "expected GROUP.NAME=VALUE, found 'model'"),
        (path, ".x=1", "expected GROUP.NAME=VALUE, found '.x'"),
    ],
)
def test_other_texts_are_refused_in_one_sentence(
    parse: Callable[[str], object], text: str, words: str
) -> None:
    with pytest.raises(AssignmentError) as caught:
        parse(text)
    assert str(caught.value).startswith(f"{text!r}: {words}")


@given(st.text(), st.booleans())
def test_parts_of_a_pair_make_its_text(text: str, last: bool) -> None:
    name, value = split_pair(text, last=last)
    assert text in (name, f"{name}={value}")
    assert "=" not in (value.partition(":")[0] if last else name)


@pytest.mark.parametrize("value", ["int8", "none", "8da4w:group=32", "4w:group=64:zeros=1", ""])
@pytest.mark.parametrize("name", ["lm_head", "a.0.b", "aten::linear", "a=b", "aten.add.Tensor"])
def test_options_belong_to_the_value(name: str, value: str) -> None:
    assert split_pair(f"{name}={value}", last=True) == (name, value)
