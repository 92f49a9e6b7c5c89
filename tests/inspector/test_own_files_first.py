"""Files that a recipe names are executed before the model is made, which may take minutes, once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.inspector.cli_runs import run

pytestmark = pytest.mark.slow

MODEL = """
import torch
class Net(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)
def net():
    raise RuntimeError("the model is made")
    return Net(), (torch.ones(2),)
"""
BROKEN = "options = [1]\nvalue = options[3]\nclass Part: pass\ndef part(graph): pass\n"
REFUSES = "class Part:\n    def __init__(self, **_given):\n        raise ValueError('no licence')\n"
ONCE = """
from pathlib import Path
from compiler.backends.xnnpack import XnnpackPartitioner
with open(Path(__file__).with_name("log"), "a") as log:
    log.write("executed\\n")
class Part(XnnpackPartitioner): pass
def part(graph): pass
"""


@pytest.mark.parametrize(
    ("content", "option", "words"),
    [
        (BROKEN, ("--partitioner", "Part"), "list index out of range"),
        (BROKEN, ("--pass", "part"), "list index out of range"),
        (BROKEN, ("--memory-planner", "part"), "list index out of range"),
        (REFUSES, ("--partitioner", "Part"), "no licence"),
        (REFUSES, ("--pass", "Part"), "no licence"),
    ],
)
def test_a_file_that_fails_is_told_before_the_model_is_made(
    tmp_path: Path, content: str, option: tuple[str, str], words: str
) -> None:
    (tmp_path / "model.py").write_text(MODEL)
    (tmp_path / "part.py").write_text(content)
    name, member = option
    asked = (f"{tmp_path}/model.py:net", name, f"{tmp_path}/part.py:{member}")
    answer = run("compile", *asked, "-o", tmp_path / "out")
    assert answer.code != 0
    assert words in answer.err
    (tmp_path / "part.py").write_text(ONCE)
    answer = run("compile", *asked[:1], "-o", tmp_path / "out")
    assert "the model is made" in answer.err


def test_a_file_with_several_parts_is_executed_once(tmp_path: Path) -> None:
    working = MODEL.replace('    raise RuntimeError("the model is made")\n', "")
    (tmp_path / "model.py").write_text(working)
    (tmp_path / "part.py").write_text(ONCE)
    parts = ("--partitioner", f"{tmp_path}/part.py:Part", "--pass", f"{tmp_path}/part.py:part")
    answer = run("compile", f"{tmp_path}/model.py:net", *parts, "-o", tmp_path / "out")
    assert answer.code == 0, answer.err
    assert (tmp_path / "log").read_text().splitlines() == ["executed"]
