"""JSON files beside a program: what cannot be read, or not be shown, is one error with the file."""

from __future__ import annotations

from pathlib import Path

import pytest

from schema.errors import FormatError
from schema.objects.codec import read_json, read_object


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "\\ud800"}',
        '{"\\udfff": 1}',
        '["\\ud83d", "\\ude00"]',  # halves of a pair in two strings
        '{"name": "cut',
        "[" * 100_000,
        "\xff",
        "",
    ],
)
def test_malformed_documents_are_one_error_with_the_file(text: str, tmp_path: Path) -> None:
    path = tmp_path / "stages.json"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(FormatError, match=r"stages\.json") as error:
        read_json(path, "the stages", 1 << 20)
    str(error.value).encode("utf-8")  # can be shown


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ('{"name": "\\ud83d\\ude00"}', "\N{GRINNING FACE}"),
        ('{"name": "\\u00e9\\\\ud800"}', "é\\ud800"),
    ],
)
def test_escaped_characters_are_read(text: str, name: str, tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text(text, "utf-8")
    assert read_object(path, "the report", 1 << 20)["name"] == name


def test_a_document_above_its_limit_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text("[1, 2, 3]", "utf-8")
    with pytest.raises(FormatError, match="more than 4"):
        read_json(path, "the report", 4)
