"""compare_results: full precision, every kind of value, nothing hidden."""

from __future__ import annotations

import math
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inspector import MissingTensor, compare_results
from inspector.compat.devtools.values import LazyValues

NAMES = ["snr", "mse", "cosine_similarity"]


def only(reference: object, run: object) -> dict[str, float | None]:
    """Return the metrics of one pair of outputs."""
    return {name: values[0] for name, values in compare_results([reference], [run]).items()}


def test_metrics_small_differences_keep_their_digits() -> None:
    found = only(np.array([1.0, 2.0]), np.array([1.0, 2.004]))
    assert found["mse"] == pytest.approx(8e-6)
    assert found["snr"] == pytest.approx(10 * math.log10(2.5 / 8e-6))
    assert 0.9999 < found["cosine_similarity"] < 1.0


def test_metrics_are_in_the_documented_order_and_can_be_chosen() -> None:
    assert list(compare_results([1.0], [1.0])) == NAMES
    assert list(compare_results([1.0], [1.0], metrics=["mse", "snr"])) == ["snr", "mse"]
    with pytest.raises(ValueError, match="unknown metric 'rmse'"):
        compare_results([1.0], [1.0], metrics=["rmse"])


def test_arguments_by_keyword_in_either_order_are_the_same() -> None:
    one, two = [np.array([1.0, 3.0])], [np.array([1.0, 2.0])]
    assert compare_results(run_output=two, reference_output=one) == compare_results(one, two)


def test_equal_outputs_have_no_noise() -> None:
    assert only(np.zeros(3), np.zeros(3)) == {"snr": math.inf, "mse": 0.0, "cosine_similarity": 1.0}


def test_zero_vector_has_no_angle() -> None:
    found = only(np.zeros(2), np.ones(2))
    assert math.isnan(found["cosine_similarity"])
    assert found["snr"] == -math.inf


def test_nan_and_infinity_are_shown_and_counted(capsys: pytest.CaptureFixture[str]) -> None:
    results = compare_results([np.array([1.0, np.nan, np.inf])], [np.array([1.0, 2.0, np.inf])])
    assert math.isnan(results["mse"][0])
    facts = results.compared[0]
    assert (facts.nan_reference, facts.nan_run, facts.inf_reference, facts.inf_run) == (1, 0, 1, 1)
    printed = capsys.readouterr().out
    assert "1 NaN in reference, 1 infinite in reference, 1 infinite in run of 3" in printed


@pytest.mark.parametrize(
    ("reference", "run", "note"),
    [
        ("a", "a", "not numeric"),
        (None, None, "not numeric"),
        (np.ones(2), None, "not numeric"),
        (np.ones((2, 3)), np.ones((3, 2)), "shapes (2, 3) and (3, 2) differ"),
        (np.ones(0), np.ones(0), "no elements"),
        (MissingTensor((2,), "float32", "gone"), np.ones(2), "reference are missing"),
        (np.ones(2), [MissingTensor((2,), "float32", "gone")], "run are missing"),
        (object(), 1, "cannot be compared"),
    ],
)
def test_values_without_metric_say_why(
    reference: object, run: object, note: str, capsys: pytest.CaptureFixture[str]
) -> None:
    results = compare_results([reference], [run])
    assert dict(results) == {name: [None] for name in NAMES}
    assert note in results.compared[0].note
    assert note in capsys.readouterr().out


@pytest.mark.parametrize("value", [3, 2.5, True, np.float32(1.5), 1 + 2j])
def test_scalars_are_compared(value: object) -> None:
    assert only(value, value)["mse"] == 0.0


def test_lists_of_tensors_are_one_vector() -> None:
    found = only([np.zeros((1, 2)), np.ones(2)], [np.zeros((1, 2)), np.array([1.0, 3.0])])
    assert found["mse"] == 1.0


def test_outputs_without_partner_are_not_dropped() -> None:
    results = compare_results([1.0, 2.0, 3.0], [1.0])
    assert results["mse"] == [0.0, None, None]
    assert "no such output" in results.compared[2].note


def test_tensors_of_torch_of_every_type_are_taken() -> None:
    torch = pytest.importorskip("torch")
    for dtype in (torch.float16, torch.bfloat16, torch.int8, torch.bool, torch.complex64):
        one = torch.tensor([1, 0, 1]).to(dtype)
        two = torch.tensor([1, 1, 1]).to(dtype)
        assert only(one, two)["mse"] == pytest.approx(1 / 3)
    assert only(torch.ones(2, requires_grad=True), np.ones(2))["mse"] == 0.0


def test_lists_that_are_still_in_a_file_are_read_without_torch() -> None:
    values = LazyValues(lambda: [1.5, (2.0, 3.0)])
    assert compare_results(values, [1.5, [2.0, 4.0]], metrics=["mse"]) == {"mse": [0.0, 0.5]}


def test_plot_writes_a_picture_a_metric(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    values = [np.ones(2), "text", np.array([np.nan]), -2.0, 5.0]
    compare_results(values, [np.ones(2) * 2, "text", np.array([1.0]), 2.0, -1.0], plot=True)
    for name in NAMES:
        tree = ElementTree.parse(f"{name}_output_plot.svg").getroot()
        texts = [element.text for element in tree.iter() if element.text and element.text.strip()]
        assert f"Metric {name}" in texts
        assert {"none", "nan", "0", "4"} <= set(texts)
        heights = [float(r.get("height", "")) for r in tree.iter() if r.tag.endswith("rect")]
        assert all(0 <= height <= 600 for height in heights)


@given(
    st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=20),
    st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=20),
)
def test_metrics_laws_hold(one: list[float], two: list[float]) -> None:
    size = min(len(one), len(two))
    found = only(np.array(one[:size]), np.array(two[:size]))
    back = only(np.array(two[:size]), np.array(one[:size]))
    assert found["mse"] == back["mse"]
    assert found["mse"] >= 0
    cosine = found["cosine_similarity"]
    assert math.isnan(cosine) or -1.0 <= cosine <= 1.0
    assert (found["mse"] == 0) <= (found["snr"] == math.inf)
