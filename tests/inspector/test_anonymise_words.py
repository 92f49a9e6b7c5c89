"""Inputs, keys of dictionaries, classes of results and texts of getters are not in a copy."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from inspector.export.anonymise import anonymise
from inspector.export.anonymise_names import Names
from inspector.files.load import load_session
from schema.etrecord import RecordFile
from schema.program import ProgramFile
from schema.program import model as m
from tests.inspector.cli_runs import run

SOURCE = """
import torch

class Grader(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.biopsy_head = torch.nn.Linear(4, 3)
        self.cohort_mean = torch.nn.Parameter(torch.full((4,), 0.7312931))
        self.register_buffer("visit_count", torch.zeros(1))

    def forward(self, tissue_slide, measured, mean):
        self.visit_count.add_(1)
        grade = self.biopsy_head(tissue_slide["stained_part"] - self.cohort_mean)
        grade = torch.div(grade + mean, 2.0, rounding_mode="floor")
        return {"grade_of_tissue": grade, "relapse": [grade.sum() + measured]}


def clinic():
    torch.manual_seed(5)
    inputs = ({"stained_part": torch.randn(2, 4)}, torch.randn(1), torch.randn(3))
    getters = {"title": "Saint Elsewhere", "place": "drwho@example", "many": 42}
    return {"module": Grader().eval(), "inputs": inputs, "constant_methods": getters}
"""
PRIVATE = b"biopsy cohort visit_count tissue stained measured grade relapse Elsewhere drwho".split()


def _unpacked(data: bytes) -> Iterator[bytes]:
    yield data
    if data[:4] == b"PK\x03\x04":
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for name in archive.namelist():
                yield archive.read(name)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("words") / "model.py"
    path.write_text(SOURCE)
    return path


@pytest.mark.parametrize("partitioner", ["", "xnnpack", "native"])
def test_words_of_a_project_are_in_no_file_of_a_copy(source: Path, partitioner: str) -> None:
    folder = source.parent / f"out_{partitioner}"
    words = ["--partitioner", partitioner] if partitioner else []
    made = run("compile", f"{source}:clinic", *words, "-o", str(folder))
    assert made.code == 0, made.err
    one = load_session([folder / "model.pte", folder / "model.etrecord"])
    before = b"\0".join(part for file in one.files for part in _unpacked(bytes(file.data)))
    assert all(word in before for word in PRIVATE)
    files = anonymise(one)
    told = b"\0".join(part for file in files for part in _unpacked(file.data))
    assert [word for word in PRIVATE if word in told] == []
    assert b"floor" in told  # a scalar argument, which says how something is computed
    to = source.parent / f"copy_{partitioner}"
    to.mkdir()
    for file in files:
        (to / file.name).write_bytes(file.data)
    new = load_session([to])
    assert new.issues == one.issues
    assert isinstance(new.record, RecordFile)
    assert new.record.issues == ()
    _assert_same_texts(one.program, new.program)


def _assert_same_texts(one: ProgramFile | None, new: ProgramFile | None) -> None:
    """Methods keep their names, descriptions of results their form, getters their numbers."""
    assert one is not None
    assert new is not None
    assert [plan.name for plan in new.plans] == [plan.name for plan in one.plans]
    for plan, other in zip(new.plans, one.plans, strict=True):
        for value, before in zip(plan.values, other.values, strict=True):
            if not isinstance(before.val, (m.String, m.Tensor)):
                assert value == before


def spec(context: str, kind: str = "builtins.dict") -> str:
    leaf = {"type": None, "context": None, "children_spec": []}
    return json.dumps([1, {"type": kind, "context": context, "children_spec": [leaf]}])


@pytest.mark.parametrize(
    "text",
    [
        spec('["secret_key", "other_secret"]'),
        spec('[["secret", "b"], 3]'),
        spec("secret.Named", "collections.namedtuple"),
        spec("null", "secret.Result"),
        spec('["\\u00e4secret\\"x"]'),
        spec('{"secret_key": "secret"}'),
        json.dumps([1, {"type": "builtins.dict", "context": '["secret"]'}], separators=(",", ":")),
        "secret, not JSON",
        "[" * 100_000 + '"secret"',
        '{"context": "secret"',
    ],
    ids=range(10),
)
def test_descriptions_of_containers_keep_their_length_and_no_name(text: str) -> None:
    found = Names().containers(text)
    assert "secret" not in found
    assert len(found.encode()) == len(text.encode())
    if found.strip():
        assert json.loads(found)


def test_descriptions_without_names_and_plain_words_stay() -> None:
    names = Names()
    for text in (spec("null", "builtins.tuple"), spec('["image", "x", 3]'), ""):
        assert names.containers(text) == text
    assert names.word("args_0") == "args_0"


def test_a_key_and_an_input_of_one_name_have_one_replacement() -> None:
    names = Names()
    other = names.word("tissue_slide")
    assert other != "tissue_slide"
    assert other in names.containers(spec('["tissue_slide"]'))
    assert names.inside(b"\0tissue_slide\0my_tissue_slide") == (
        b"\0" + other.encode() + b"\0my_tissue_slide"
    )
