"""What every verb says of a run of programs of other families: one set of figures that adds up."""

from __future__ import annotations

import itertools
import json
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from inspector.compare.sessions import compare_sessions
from inspector.files.load import load_session
from inspector.jobs import run as jobs
from inspector.join.record_maps import edge_graph
from inspector.tables.registry import build
from inspector.tables.table import Table
from schema.graph import common_module
from tests.inspector import unseen_nets
from tests.inspector.cli_runs import run, valid
from tests.inspector.jobs_here import Here

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:The tensor attributes"),  # of recurrent layers
]

EXACT = 1e-12  # relative; sums of rounded numbers
OURS, XNNPACK, STOCK = "ours", "ours on XNNPACK", "stock"
NAMES = [net.__name__ for net in unseen_nets.NETS]
CASES = [(name, kind) for name in NAMES for kind in (OURS, XNNPACK)]
CASES += [(name, STOCK) for name in ("tiny", "levels")]
ZERO = re.compile(r"(?<![\d.,])0(\.0+)? (ns|µs|ms|s)\b")
COUNTED = (  # by torch as well
    *(f"aten.{name}." for name in ("convolution", "addmm", "mm", "bmm", "linear")),
    *("Convolution", "Deconvolution", "Fully Connected", "Batch Matrix Multiply"),
)


@dataclass(frozen=True)
class Ran:
    """A program that ran.

    Attributes:
        name: of its net
        files: program, record and the folder of the run
        report: of the run
    """

    name: str
    files: tuple[str, ...]
    report: dict[str, Any]

    @property
    def headline_ms(self) -> float:
        return self.report["latency_ms"]["mean"]

    def data(self, verb: str, *more: str) -> dict[str, Any]:
        answer = run(*verb.split(" "), *self.files, *more, "--format", "json")
        assert answer.code == 0, answer.err
        return valid(answer, verb.split(" ", maxsplit=1)[0])["data"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Any:
    known: dict[tuple[str, str], Ran] = {}
    folder = tmp_path_factory.mktemp("unseen")

    def make(name: str, kind: str) -> Ran:
        if (name, kind) not in known:
            known[name, kind] = _ran(name, kind, folder / f"{name} {kind}")
        return known[name, kind]

    return make


def _ran(name: str, kind: str, out: Path) -> Ran:
    source = f"{unseen_nets.__file__}:{name}"
    words = [] if kind == OURS else ["--partitioner", "xnnpack"]
    if kind == STOCK:
        pytest.importorskip("executorch")
        words += ["--toolchain", "executorch"]
    with pytest.MonkeyPatch.context() as patch:
        if kind != STOCK:
            patch.setattr(jobs, "Worker", Here)
        compiled = run("compile", source, *words, "-o", out)
        assert compiled.code == 0, compiled.err
        patch.setattr(jobs, "Worker", Here)
        answer = run("run", out, "-o", out / "run", "--runs", "20", "--warmup", "2")
    assert answer.code == 0, answer.err
    report = json.loads((out / "run/run.json").read_text())
    files = tuple(str(out / one) for one in ("model.pte", "model.etrecord", "run"))
    return Ran(name, files, report)


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_every_verb_has_the_figures_of_the_run(made: Any, name: str, kind: str) -> None:
    one: Ran = made(name, kind)
    profile = one.data("profile")["methods"]["forward"]
    parts = ("delegates_ms", "operators_ms", "control_ms", "unattributed_ms")
    assert profile["bare_ms"] == one.headline_ms
    traced = one.report["traced_latency_ms"]["mean"]
    assert traced == pytest.approx(profile["method_ms"], rel=EXACT)
    assert math.fsum(profile[part] for part in parts) == pytest.approx(
        profile["method_ms"], rel=EXACT
    )
    assert profile["bare_ms"] + profile["tracing_ms"] == pytest.approx(
        profile["method_ms"], rel=EXACT
    )
    (table,) = one.data("table operators")["tables"]
    ids = [column["id"] for column in table["columns"]]
    mean, share = (
        [row["values"][ids.index(each)] for row in table["rows"]]
        for each in ("mean", "share_of_method")
    )
    assert math.fsum(value for value in mean if value is not None) / 1e6 == pytest.approx(
        one.headline_ms, rel=1e-9
    )
    assert math.fsum(value for value in share if value is not None) == pytest.approx(1, rel=1e-9)
    (gate,) = one.data("gate", "--require", "latency.mean<=1000s")["requirements"]
    assert gate["value"] == pytest.approx(one.headline_ms, rel=EXACT)
    roof = one.data("roofline")["methods"]["forward"]
    assert roof["total"]["time_ns"] / 1e6 == pytest.approx(one.headline_ms, rel=1e-9)
    known = [row["flops"] for row in roof["operators"]]
    assert roof["total"]["flops"] == (None if None in known else sum(known))


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_module_of_an_operator_holds_all_of_its_nodes(made: Any, name: str, kind: str) -> None:
    session = load_session(list(made(name, kind).files))
    assert session.record is not None
    graph = edge_graph(session.record, "forward")
    assert graph is not None
    nodes = {node.name: node for node in graph.nodes}
    table = build("operators", session, "forward")
    assert isinstance(table, Table)
    columns = {column.id: column.values for column in table.columns}
    checked = 0
    for names, module in zip(columns["node"], columns["module"], strict=True):
        known = [nodes[name] for name in str(names).split(", ") if name in nodes]
        assert (module or "") == common_module(known)
        checked += len(known) > 1
    assert checked or kind == OURS


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_no_text_has_a_time_of_zero(made: Any, name: str, kind: str) -> None:
    one: Ran = made(name, kind)
    for verb in ("profile", "summary", "table operators", "table events", "roofline", "report"):
        answer = run(*verb.split(" "), *one.files)
        assert answer.code == 0, answer.err
        assert not ZERO.search(answer.out), (verb, ZERO.search(answer.out))


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_flops_are_those_of_the_counter_of_torch(made: Any, name: str, kind: str) -> None:
    one: Ran = made(name, kind)
    module, inputs = getattr(unseen_nets, name)()
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        module(*inputs)
    rows = one.data("roofline")["methods"]["forward"]["operators"]
    found = [row["flops"] for row in rows if row["operator"].startswith(COUNTED)]
    assert sum(found) == counter.get_total_flops()


@pytest.mark.parametrize("name", NAMES)
def test_comparison_has_the_figures_of_both_runs(made: Any, name: str) -> None:
    one, two = made(name, OURS), made(name, XNNPACK)
    sides = [",".join(each.files) for each in (one, two)]
    answer = run("compare", *sides, "--no-gap", "--format", "json")
    data = valid(answer, "compare")["data"]
    heads = [one.headline_ms, two.headline_ms]
    (recorded,) = [row for row in data["summary"] if row["area"] == "time"]
    assert recorded["values"] == pytest.approx(heads, rel=EXACT)
    for side, head in enumerate(heads):
        known = [row["ms"][side] for row in data["operators"] if row["ms"][side] is not None]
        assert math.fsum(known) == pytest.approx(head, rel=1e-9)
    assert data["problems"] == []
    assert {row["word"] for row in data["weighed"][0] if row["area"] == "latency"} == {"unknown"}
    assert not ZERO.search(run("compare", *sides, "--no-gap").out)


def test_variants_of_a_net_are_one_program_and_two_nets_are_not(made: Any) -> None:
    sides = {
        (name, kind): load_session(made(name, kind).files[:2])
        for name in NAMES
        for kind in (OURS, XNNPACK)
    }
    for one, two in itertools.combinations(sides, 2):
        if one[0] != two[0] and "tiny" in (one[0], two[0]):
            continue  # its five operators may as well be a part of another one
        problems = compare_sessions([sides[one], sides[two]]).problems
        assert bool(problems) == (one[0] != two[0]), (one, two, problems)
