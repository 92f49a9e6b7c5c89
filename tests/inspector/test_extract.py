"""Files taken out of sessions hold the bytes and numbers of the session, in safe places."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from inspector.cli.output import safe_path
from inspector.export.extract import CONSTANTS, DATA, KINDS, PAYLOADS, TENSORS, items
from inspector.files.load import load_session
from inspector.numerics import tensor_statistics as stats
from inspector.numerics.tensor_statistics import (
    RunningMoments,
    data_statistics,
    has_numbers,
    statistics,
)
from inspector.numerics.tensors import logged_tensors, shaped, stored_tensors
from schema.dtypes.scalar_type import BY_CODE, scalar_type
from tests.inspector.cli_runs import run
from tests.inspector.sessions import DATA as FILES
from tests.inspector.sessions import folders, label, session

_MOST = float(np.finfo(np.float64).max)


@pytest.mark.parametrize("folder", folders("model.pte"), ids=label)
def test_constants_are_the_stored_bytes(folder: Path) -> None:
    loaded = session(folder)
    found, issues = items(loaded, loaded.methods, (CONSTANTS,))
    stored = [one for method in loaded.methods for one in stored_tensors(loaded, method)]
    assert issues == []
    assert len(found) == len(stored)
    for item, tensor in zip(found, stored, strict=True):
        array = item.load()
        assert isinstance(array, np.ndarray)
        assert array.shape == tensor.sizes
        assert array.dtype.name == tensor.dtype
        order = tensor.dim_order or tuple(range(array.ndim))
        assert np.ascontiguousarray(array.transpose(order)).tobytes() == bytes(tensor.data or b"")


@pytest.mark.parametrize("folder", folders("run.debug"), ids=label)
def test_tensors_are_the_logged_ones_of_every_run(folder: Path) -> None:
    loaded = session(folder)
    found, _ = items(loaded, loaded.methods, (TENSORS,))
    runs = max(len(dump.run_data) for dump in loaded.dumps)
    logged = [one for number in range(runs) for one in logged_tensors(loaded, number)]
    kept = [one for one in logged if not one.missing]
    assert len(found) == len(kept)
    for item, tensor in zip(found, kept, strict=True):
        assert np.array_equal(item.load(), tensor.array(), equal_nan=True)


def test_payload_files_of_a_core_ml_delegate_are_a_package(tmp_path: Path) -> None:
    target = tmp_path / "out"
    assert run("extract", FILES / "corpus/payloads/coreml.pte", "-o", target).code == 0
    (package,) = target.rglob("model.mlpackage")
    assert (package / "Manifest.json").read_text().startswith("{")
    assert (package / "Data/com.apple.CoreML/model.mlmodel").stat().st_size > 0


@pytest.mark.parametrize("kind", [*KINDS, "all"])
def test_kinds_can_be_asked_for_one_by_one(kind: str) -> None:
    folder = FILES / "corpus/v1.5.1/convnet_xnnpack"
    what = kind.replace(" ", "-")
    files = run("extract", folder, "--what", what, "--format", "json").json["data"]["files"]
    assert {file["kind"] for file in files} == (
        {PAYLOADS, CONSTANTS, DATA, TENSORS} if kind == "all" else {kind}
    )


def test_what_is_missing_is_said_not_made_up() -> None:
    folder = FILES / "extra/external_weights"
    answer = run("extract", folder / "model.pte", "--format", "json")
    assert answer.code == 0
    assert answer.json["data"]["files"] == []
    messages = [issue["message"] for issue in answer.json["issues"]]
    assert messages
    assert all(".ptd" in message for message in messages)


def test_link_in_the_folder_does_not_lead_out_of_it(tmp_path: Path) -> None:
    outside, target = tmp_path / "outside", tmp_path / "out"
    outside.mkdir()
    target.mkdir()
    (target / "forward").symlink_to(outside)
    folder = FILES / "corpus/v1.5.1/convnet_portable"
    answer = run("extract", folder, "-o", target, "--force")
    assert answer.code == 2
    assert "outside of" in answer.err
    assert list(outside.iterdir()) == []


@given(st.lists(st.text(min_size=0, max_size=300), min_size=1, max_size=5))
def test_safe_path_stays_below_its_folder(parts: list[str]) -> None:
    path = safe_path(parts)
    assert not path.is_absolute()
    assert len(path.parts) == len(parts)
    for part in path.parts:
        assert part not in (".", "..")
        assert not part.startswith(".")
        assert len(part) <= 101
        assert not set(part) & set('/\\:*?"<>|\0')


@pytest.mark.parametrize("code", sorted(BY_CODE))
def test_statistics_know_which_types_have_numbers(code: int) -> None:
    item = scalar_type(code).item_bytes
    found = data_statistics(memoryview(bytes(item * 3)), code)
    ordered = has_numbers(code) and "complex" not in scalar_type(code).name
    assert (found is not None) == ordered
    if found is not None:
        assert (found["count"], found["zero"], found["min"], found["max"]) == (3, 3, 0, 0)


floats = hnp.arrays(np.float32, st.integers(0, 40), elements=st.floats(width=32))


@given(floats, st.integers(1, 7))
def test_statistics_do_not_depend_on_the_size_of_pieces(array: np.ndarray, piece: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stats, "_PIECE", piece)
        pieces = data_statistics(memoryview(array.tobytes()), 6)
    whole = statistics(array)
    assert pieces is not None
    assert whole is not None
    for name, value in whole.items():
        if name in ("mean", "std"):
            assert (value is None) == (pieces[name] is None)
            scale = max(abs(float(whole["max"] or 0)), abs(float(whole["min"] or 0)), 1e-30)
            assert value is None or math.isclose(value, pieces[name], abs_tol=1e-6 * scale)
        else:
            assert value == pieces[name]
    finite = array[np.isfinite(array)].astype(np.float64)
    assert whole["count"] == array.size
    assert whole["nan"] == np.isnan(array).sum()
    assert whole["inf"] == np.isinf(array).sum()
    if finite.size:
        assert whole["min"] == finite.min()
        assert whole["max"] == finite.max()


def test_shaped_follows_the_order_of_dimensions() -> None:
    stored = np.arange(24, dtype=np.float32)
    array = shaped(memoryview(stored.tobytes()), 6, (2, 3, 4), (0, 2, 1))
    assert array is not None
    assert np.array_equal(array, stored.reshape(2, 4, 3).transpose(0, 2, 1))
    assert shaped(memoryview(stored.tobytes()), 6, (2, 3, 5), ()) is None
    assert shaped(memoryview(stored.tobytes()), 6, (2, 3, 4), (0, 0, 1)) is None
    assert shaped(memoryview(b"123"), 6, (), ()) is None


def test_files_of_a_vendors_tools_are_beside_the_payload_they_belong_to() -> None:
    name = FILES / "backends/ethosu_m1_int8.pte"
    loaded = load_session([name, name.with_suffix(".etrecord")])
    found, issues = items(loaded, loaded.methods, (PAYLOADS,))
    assert issues == []
    kept = {one.path[-1]: one.load() for one in found if "kept" in one.path}
    assert {"out.tosa", "out_per-layer.csv", "out_debug.xml"} <= {*kept}
    assert bytes(kept["out_per-layer.csv"]).startswith(b"Original Operator")


@pytest.mark.parametrize(
    ("values", "mean", "deviation"),
    [
        ((_MOST, _MOST), _MOST, 0.0),
        ((_MOST, -_MOST), 0.0, _MOST),
        ((3.0, 1e200, -1e200), 0.0, 8.16e199),
    ],
)
def test_statistics_of_the_largest_numbers_are_finite(
    values: tuple[float, ...], mean: float, deviation: float
) -> None:
    together = statistics(np.array(values))
    moments = RunningMoments()
    for one in values:
        moments.add(np.array([one]))
    for found in (together, moments.facts()):
        assert found is not None
        assert found["mean"] == pytest.approx(mean, abs=10.0)
        assert found["std"] == pytest.approx(deviation, rel=1e-3)
