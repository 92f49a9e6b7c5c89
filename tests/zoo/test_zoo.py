"""Every architecture compiles and runs as in eager mode and as on the stock runtime."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest

from tests.zoo.__main__ import PAGE, QUICK, SIDES, measure
from tests.zoo.columns import KEPT, STAMP, defects_of, rows_of
from tests.zoo.models import MODELS
from tests.zoo.partitions import problems as partition_problems
from tests.zoo.partitions import write_partitions
from tests.zoo.table import problems, read, row, write_page

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(2000)]

# aten::histc is no core operator and no runtime has a kernel for it.
REFUSED = ("mixtral",)


def measured(name: str, folder: Path) -> list[str]:
    options = argparse.Namespace(results=folder, timeout=900.0)
    for side in SIDES:
        assert measure(side, name, options) == "done"
    found = problems(read(folder / name))
    return [one for one in found if name not in REFUSED or "SpecViolationError" not in one]


@pytest.mark.zoo
@pytest.mark.parametrize("name", MODELS)
def test_architecture(name: str, tmp_path: Path) -> None:
    assert measured(name, tmp_path) == []


@pytest.mark.zoo  # 24 s; make zoo and pytest -m zoo
def test_model_without_packages_is_measured_whole(tmp_path: Path) -> None:
    assert measured("moe", tmp_path) == []
    found = read(tmp_path / "moe")
    assert set(found["ours"]) == {"portable", "float", "dynamic", "static"}
    assert set(found["ours"]["static"]["error_of"]) == {"torch", "native"}
    assert found["ours"]["float"]["delegation"][1] >= found["stock"]["stock"]["delegation"][1]
    assert len(found["gaps"]) == 12
    assert all("–" not in cell for cell in row("moe", found))


@pytest.mark.zoo  # 10 s; make zoo and pytest -m zoo
def test_partitions_are_no_more_than_stock_has(tmp_path: Path) -> None:
    options = argparse.Namespace(results=tmp_path, timeout=900.0)
    assert measure(QUICK, "rnnt_joiner", options) == "done"
    page = tmp_path / "partitions.md"
    assert write_partitions(tmp_path, ("rnnt_joiner", "moe"), page) == []
    assert "| rnnt_joiner | 1/7/2 | 2/5/6 | " in page.read_text("utf-8")
    assert "Not measured yet: moe." in page.read_text("utf-8")


@pytest.mark.parametrize(
    ("ours", "wrong"),
    [
        ([2, 5, 3], []),
        ([3, 6, 2], ["3 partitions, stock has 2"]),
        ([2, 4, 4], ["4 delegated nodes, stock has 5"]),
        ([1, 4, 3], []),  # a node fewer in all
    ],
)
def test_what_is_behind_the_stock_compiler(ours: list[int], wrong: list[str]) -> None:
    stock = {"delegation": [2, 5, 3], "bytes": 100}
    assert partition_problems({"ours": {"delegation": ours, "bytes": 100}, "stock": stock}) == wrong
    larger = {"ours": {"delegation": [2, 5, 3], "bytes": 1000}, "stock": stock}
    assert partition_problems(larger) == ["1,000 B, stock has 100 B"]
    assert partition_problems({"ours": {"error": "no"}, "stock": stock}) == ["refused: no"]
    assert partition_problems({"ours": {"error": "no"}, "stock": {"error": "no"}}) == []


def test_page_names_what_is_wrong(tmp_path: Path) -> None:
    broken = {
        "bytes": 10,
        "delegation": [1, 2, 3],
        "memory": {"least": 64, "peak": 64, "planned": 32, "broken": [[64, 64, 32]]},
        "error_of": {"torch": 1e-3, "native": float("nan")},
    }
    gap = {"outputs": 3, "compared": 2, "first_divergence": "add (instruction 1)"}
    (tmp_path / "moe").mkdir()
    (tmp_path / "moe" / "ours.json").write_text(json.dumps({"float": broken}))
    (tmp_path / "moe" / "gaps.json").write_text(json.dumps({"static xnnpack torch": gap}))
    (tmp_path / "moe" / "stock.json").write_text(json.dumps({"float": {"error": "no"}}))
    wrong = write_page(tmp_path, tmp_path / "models.md")
    assert [line for line in wrong if line.startswith("moe: ")] == [
        "moe: float on the stock runtime: no",
        "moe: float: plan 32 B below 64 B",
        "moe: float: torch is off by 1.0e-03 of the largest value",
        "moe: float: native is off by nan of the largest value",
        "moe: static xnnpack torch: gap: add (instruction 1)",
    ]
    assert len(wrong) == 5
    page = (tmp_path / "models.md").read_text("utf-8")
    assert "| moe | 1/2/3 | – | 0/– |" in page
    assert "Not measured yet: mobilenet_v2, " in page


def _result(folder: Path, name: str, compiler: str) -> None:
    way = {"bytes": 10, "delegation": [7, 8, 9], "error_of": {}}
    way["memory"] = {"least": 1, "peak": 1, "planned": 1, "broken": []}
    (folder / name).mkdir(parents=True)
    (folder / name / "ours.json").write_text(json.dumps({"float": way}))
    (folder / name / STAMP).write_text(json.dumps({"ours": compiler}))


def test_page_of_this_tree_is_what_the_generator_writes(tmp_path: Path) -> None:
    """Without any result, also its note on older columns and what is wrong."""
    page = tmp_path / "models.md"
    page.write_bytes(PAGE.read_bytes())
    wrong = write_page(tmp_path / "none", page)
    assert page.read_text("utf-8") == PAGE.read_text("utf-8")
    assert wrong == [line for lines in defects_of(PAGE).values() for line in lines]
    assert {name for one in KEPT for name in one.models} <= set(rows_of(PAGE))


def test_a_measured_model_leaves_the_note_on_older_columns(tmp_path: Path) -> None:
    page = tmp_path / "models.md"
    page.write_bytes(PAGE.read_bytes())
    _result(tmp_path, "swin_tiny", "2026-11-27 abc")
    write_page(tmp_path, page)
    text, rows = " ".join(page.read_text("utf-8").split()), rows_of(page)
    assert rows["swin_tiny"].startswith("| swin_tiny | 7/8/9 | ")
    assert rows["gpt2"] == rows_of(PAGE)["gpt2"]
    assert "*nodes* of swin_tiny are" not in text
    assert "of swin_tiny are of the compiler of 2026-11-27 abc." in text
    assert "first run of all models" in text


def test_page_of_one_compiler_has_no_note(tmp_path: Path) -> None:
    page = tmp_path / "models.md"
    for name in MODELS:
        _result(tmp_path, name, "2026-11-27 abc")
    write_page(tmp_path, page)
    assert "Not all columns" not in page.read_text("utf-8")
    _result(tmp_path / "other", "moe", "2026-11-28 def")
    (tmp_path / "moe" / STAMP).write_bytes((tmp_path / "other" / "moe" / STAMP).read_bytes())
    write_page(tmp_path, page)
    text = " ".join(page.read_text("utf-8").split())
    assert "of moe are of the compiler of 2026-11-28 def." in text
    assert "rnnt_joiner are of the compiler of 2026-11-27 abc." in text
