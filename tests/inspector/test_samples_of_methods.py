"""Items of a data source that name their method: evaluation, calibration and single runs."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from compiler import to_edge
from inspector.worker.data_set import calibration_calls, inputs_named, open_data
from inspector.worker.exporter import AnswerError
from inspector.worker.inputs import ValuesError
from runtime import Runtime
from tests.inspector.cli_runs import run

pytestmark = pytest.mark.slow
_SOURCE = """
import torch

def turns():
    yield {"method": "wide", "inputs": (torch.full((1, 4), 1.0),)}
    for step in range(3):
        yield {"method": "narrow", "inputs": (torch.full((1, 2), float(step)),)}
    yield (torch.full((1, 4), 9.0),)

def wide():
    yield {"method": "wide", "inputs": (torch.ones(1, 4),)}

def wrong():
    yield {"method": "narow", "inputs": (torch.ones(1, 2),)}
    yield {"method": "narrow", "inputs": (torch.ones(1, 2),)}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "data.py").write_text(_SOURCE)
    parts = {name: nn.Linear(size, 3).eval() for name, size in (("wide", 4), ("narrow", 2))}
    programs = {
        name: torch.export.export(part, (torch.ones(1, part.in_features),))
        for name, part in parts.items()
    }
    for number in range(2):
        (tmp_path / f"v{number}").mkdir()
        buffer = bytes(to_edge(programs).to_executorch().buffer)
        (tmp_path / f"v{number}" / "model.pte").write_bytes(buffer)
    return tmp_path


def _plan(folder: Path, method: str):
    return Runtime.get().load_program(folder / "v0" / "model.pte").file.plan(method)


@pytest.mark.parametrize(
    ("method", "wanted"), [("wide", [1.0, 9.0]), ("narrow", [0.0, 1.0, 2.0, 9.0])]
)
def test_a_method_takes_items_that_name_it_or_none(
    folder: Path, method: str, wanted: list[float]
) -> None:
    data = open_data(f"{folder / 'data.py'}:turns", None, lambda *_, **__: None)
    found = list(data.samples(1, method))
    assert [one.inputs[0][0, 0].item() for one in found] == wanted
    assert [one.index for one in found] == list(range(len(wanted)))


@pytest.mark.parametrize(("index", "method", "value"), [(0, "wide", 1.0), (2, "narrow", 2.0)])
def test_a_numbered_sample_is_one_of_the_method(
    folder: Path, index: int, method: str, value: float
) -> None:
    source = f"{folder / 'data.py'}:turns"
    (found,) = inputs_named(f"{source}#{index}", 0, _plan(folder, method))
    assert found[0, 0].item() == value
    with pytest.raises(AnswerError, match=f"has no sample 7 for {method}"):
        inputs_named(f"{source}#7", 0, _plan(folder, method))


def test_calibration_takes_the_items_of_its_method(folder: Path) -> None:
    program = torch.export.export(nn.Linear(4, 3), (torch.ones(1, 4),))
    found = calibration_calls(f"{folder / 'data.py'}:turns", "wide", program)
    assert [call[0][0, 0].item() for call in found] == [1.0, 9.0]
    with pytest.raises(AnswerError, match="no sample is for forward, found wide"):
        calibration_calls(f"{folder / 'data.py'}:wide", "forward", program)


def test_an_evaluation_takes_the_items_of_its_method(folder: Path) -> None:
    variants = [str(folder / f"v{number}" / "model.pte") for number in range(2)]

    def evaluated(name: str, *more: str):
        into = ("-o", str(folder / "out"), "--force", "--format", "json")
        data = ("--data", f"{folder / 'data.py'}:{name}", "--reference", "first")
        return run("eval", *variants, *data, *into, *more)

    found = evaluated("turns", "--method", "wide")
    assert found.code == 0, found.err
    content = json.loads(found.out)["data"]
    assert content["samples"] == 2
    assert content["complete"]
    assert content["variants"][1]["outputs"][0]["exact"]
    found = evaluated("wrong", "--method", "narrow")
    assert found.code
    assert "sample 0: unknown method 'narow'; available: narrow, wide" in found.err
    found = evaluated("wide", "--method", "narrow")
    assert found.code
    assert "no sample is for narrow, found wide" in found.err


_ARRAYS = """
import numpy as np

def scalars():
    yield np.float32(1.5), np.int64(2), True
"""


def test_arrays_are_read_in_any_byte_order_and_hidden_files_left_out(tmp_path: Path) -> None:
    row = np.arange(4)
    for number, array in enumerate((row.astype(">f4"), row.astype("<f4")[::-1])):
        np.save(tmp_path / f"{number}.npy", array)
    (tmp_path / "._0.npy").write_bytes(b"left by an archiver")
    found = list(open_data(str(tmp_path), None, _quiet).samples(1, "forward"))
    assert [one.inputs[0].tolist() for one in found] == [[0.0, 1.0, 2.0, 3.0], [3.0, 2.0, 1.0, 0.0]]
    np.save(tmp_path / "2.npy", np.array(["a"]))
    with pytest.raises(ValuesError, match=r"sample 2: expected numbers or truth values, found"):
        list(open_data(str(tmp_path), None, _quiet).samples(1, "forward"))
    (tmp_path / "data.py").write_text(_ARRAYS)
    samples = open_data(f"{tmp_path}/data.py:scalars", None, _quiet).samples(3, "forward")
    assert [one.inputs for one in samples] == [[1.5, 2, True]]


def _quiet(*_kind: object, **_content: object) -> None:
    """Hear no message."""
