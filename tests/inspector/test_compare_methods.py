"""Programs that share some methods or none: only what is the same method is compared."""

from __future__ import annotations

import pytest

from inspector.compare.output_errors import OutputErrors
from inspector.compare.sessions import compare_sessions
from inspector.experiments.evaluate.comparing import errors_job
from inspector.graph.methods import method_to_run
from inspector.jobs.executing import RunJob
from tests.inspector.cli_runs import run
from tests.inspector.sessions import DATA, session

TWO = "extra/two_methods"  # decode, encode
FORWARD = "corpus/v1.5.1/convnet_portable"
SUITES = "extra/bundled_two_suites"  # forward, score
STATE = "extra/shared_state"  # count, plain

RUN: dict[str, tuple[tuple[str, ...], str, str]] = {
    "of nothing none": ((), "forward", ""),
    "of one program the default": ((TWO,), "", "decode"),
    "the chosen one": ((TWO, "extra/two_methods_xnnpack"), "encode", "encode"),
    "the first that both have": ((TWO, "extra/two_methods_xnnpack"), "", "decode"),
    "the shared one, not the first": ((SUITES, FORWARD), "score", "forward"),
    "none": ((TWO, FORWARD), "", ""),
    "none, whatever was chosen": ((TWO, FORWARD), "encode", ""),
    "none of three": ((TWO, "extra/two_methods_xnnpack", STATE), "decode", ""),
}


@pytest.mark.parametrize("case", RUN)
def test_one_method_of_all_is_run(case: str) -> None:
    names, chosen, expected = RUN[case]
    assert method_to_run([session(DATA / name) for name in names], chosen) == expected


@pytest.mark.parametrize("other", [TWO, STATE])
def test_constants_of_programs_without_a_common_method_are_not_counted(other: str) -> None:
    found = compare_sessions([session(DATA / FORWARD), session(DATA / other)])
    assert [one.what for one in found.summary if one.area == "tensors"] == []


def test_constants_are_missing_of_the_session_that_shares_no_method() -> None:
    sessions = [
        session(DATA / FORWARD),
        session(DATA / "corpus/v1.5.1/convnet_xnnpack"),
        session(DATA / TWO),
    ]
    found = compare_sessions(sessions)
    counted = [one.values for one in found.summary if one.what.startswith("constants")]
    assert counted
    for values in counted:
        assert values[1] is not None
        assert values[2] is None


def test_errors_of_programs_without_a_common_method_say_so() -> None:
    found = errors_job([session(DATA / FORWARD), session(DATA / TWO)], RunJob(""))
    assert isinstance(found, OutputErrors)
    assert found.notes == (
        "errors of outputs are not computed: the programs have no method in common",
    )


def test_measure_refuses_programs_without_a_common_method() -> None:
    done = run("compare", DATA / FORWARD, DATA / TWO, "--measure", "3")
    assert done.code == 2
    assert "--measure needs a method that all programs have" in done.err
    assert "(convnet_portable: forward; two_methods: decode, encode)" in done.err
