"""A program in integers beside the same one in floating point: times by what computes."""

from __future__ import annotations

from pathlib import Path

import pytest

from inspector.compare.sessions import compare_sessions
from inspector.files.load import load_session
from inspector.jobs import run as jobs
from tests.inspector import unseen_nets
from tests.inspector.cli_runs import run
from tests.inspector.jobs_here import Here

pytestmark = [
    pytest.mark.slow,
    pytest.mark.interop,
    pytest.mark.filterwarnings("ignore:The tensor attributes"),  # of recurrent layers
]


@pytest.mark.parametrize("mode", ["static", "dynamic"])
def test_operators_in_integers_stand_beside_those_in_floating_point(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    monkeypatch.setattr(jobs, "Worker", Here)
    for name, words in (("float", ()), ("integers", ("--quantize", mode))):
        source = f"{unseen_nets.__file__}:levels"
        out = tmp_path / name
        compiled = run("compile", source, "--partitioner", "xnnpack", *words, "-o", out)
        assert compiled.code == 0, compiled.err
        ran = run("run", out, "-o", out / "run", "--runs", "3", "--warmup", "1")
        assert ran.code == 0, ran.err
    sessions = [load_session([tmp_path / name]) for name in ("float", "integers")]

    rows = {row.name: row.calls for row in compare_sessions(sessions).operators}

    assert all(rows["aten::convolution"])
    assert not [name for name in rows if "quantize_per" in name and " + aten" in name]
