"""Core ML's own files open, run and compare as programs do."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from inspector.files.load import load_session, siblings
from inspector.files.session_groups import split_sessions
from runtime import ErrorCode, ExecutionError, Runtime
from schema import payloads
from schema.errors import FormatError
from schema.files.vendor_models import is_vendor_model, vendor_program, vendor_suffixes
from schema.payloads import Payload
from tests.conftest import DATA
from tests.inspector.cli_runs import run
from tests.schema.test_payload_coreml import (
    argument,
    body,
    model,
    named,
    operation,
    tensor_type,
)

_MODEL = "Data/com.apple.CoreML/model.mlmodel"


def _payload(name: str) -> Payload:
    return payloads.decode("CoreMLBackend", (DATA / f"coreml/{name}.bin").read_bytes())


def _package(folder: Path, name: str) -> Path:
    """Write the package that a flattened payload has."""
    found = folder / f"{name}.mlpackage"
    for path, data in _payload(name).files.items():
        if path.startswith("model.mlpackage/"):
            target = found / path.removeprefix("model.mlpackage/")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
    return found


def test_package_opens_with_the_nodes_and_weights_of_its_program(tmp_path: Path) -> None:
    session = load_session([_package(tmp_path, "palette")])
    assert session.name == "palette"
    program = session.program
    assert program is not None
    (plan,) = program.plans
    assert plan.name == "forward"
    assert {one.val.shape_dynamism for one in plan.values} == {0}
    inside = payloads.decode(plan.delegates[0].id, program.delegate_data(plan.delegates[0]))
    assert inside.graph == _payload("palette").graph
    names = {one.name for one in inside.constants}
    assert names == {one.name for one in _payload("palette").constants}
    assert inside.external_ids == {0: "x", 1: "y"}


def test_package_computes_what_its_payload_does(tmp_path: Path) -> None:
    from runtime.backends.coreml import CoreMLBackend
    from runtime.delegates.interface import DelegateTracer

    x = torch.linspace(-1, 1, 16)[None]
    engine = CoreMLBackend().engine(_payload("palette"), 0)
    (expected,) = engine.run([x], DelegateTracer(None, (0, 0)))
    method = Runtime().load_program(_package(tmp_path, "palette")).load_method("forward")
    assert torch.equal(method.execute([x])[0], expected)


def test_each_function_is_a_method_of_one_model(tmp_path: Path) -> None:
    package = _package(tmp_path, "functions")
    program = Runtime().load_program(package)
    assert program.method_names == {"prefill", "decode"}
    made = [
        program.load_method(name).execute([torch.ones(1, 16)])[0] for name in ("prefill", "decode")
    ]
    assert not torch.equal(*made)
    whole = sum(path.stat().st_size for path in package.rglob("*") if path.is_file())
    assert len(vendor_program(package)) < whole + 8192  # weights are in it once


def test_state_of_a_package_stays_between_runs(tmp_path: Path) -> None:
    method = Runtime().load_program(_package(tmp_path, "state")).load_method("forward")
    first, second = (method.execute([torch.ones(2)])[0].clone() for _ in range(2))
    assert not torch.equal(first, second)


def test_model_file_opens_alone_and_names_the_weights_it_lacks(tmp_path: Path) -> None:
    path = tmp_path / "linear.mlmodel"
    path.write_bytes((_package(tmp_path, "linear") / _MODEL).read_bytes())
    program = load_session([path]).program
    assert program is not None
    with pytest.raises(ExecutionError, match="the bytes of constant fc_weight") as refused:
        Runtime().load_program(path).load_method("forward")
    assert refused.value.code == ErrorCode.InvalidExternalData


def test_neural_network_is_shown_and_refused_by_its_kind(tmp_path: Path) -> None:
    path = tmp_path / "old.mlmodel"
    (data,) = (one for name, one in _payload("network").files.items() if name.endswith(".mlmodel"))
    path.write_bytes(data)
    assert load_session([path]).program is not None
    with pytest.raises(ExecutionError, match="a neural network is shown, not run"):
        Runtime().load_program(path).load_method("forward")


@pytest.mark.slow
def test_verbs_take_a_package_for_a_program(tmp_path: Path) -> None:
    package = _package(tmp_path, "linear")
    answer = run("run", package, "-o", tmp_path / "out", "--debug-level", "intermediate")
    assert answer.code == 0, answer.err
    profile = run("profile", package, tmp_path / "out")
    assert "fc_cast_fp16:linear" in profile.out
    assert "interpreted" in profile.out
    assert run("step", package).code == 0
    both = run("compare", package, _package(tmp_path, "palette"))
    assert both.code == 0, both.err
    assert "constexpr_lut_to_dense" in both.out


def test_extracted_package_opens_as_its_program(tmp_path: Path) -> None:
    source = DATA / "backends/coreml_m1.pte"
    assert run("extract", source, "-o", tmp_path).code == 0
    (package,) = tmp_path.rglob("*.mlpackage")
    inputs, (expected,) = torch.load(source.with_suffix(".pt"))
    method = Runtime().load_program(package).load_method("forward")
    torch.testing.assert_close(method.execute(inputs)[0], expected, rtol=1e-6, atol=1e-6)


def test_packages_are_programs_among_the_files_of_a_folder(tmp_path: Path) -> None:
    one, other = _package(tmp_path, "linear"), _package(tmp_path, "palette")
    assert siblings(tmp_path) == [str(one), str(other)]
    assert split_sessions([str(one), str(other)]) == ((str(one),), (str(other),))
    assert set(vendor_suffixes()) == {".mlpackage", ".mlmodel"}
    assert not is_vendor_model(tmp_path / "missing.mlpackage")


def test_package_without_a_model_names_what_it_lacks(tmp_path: Path) -> None:
    package = tmp_path / "empty.mlpackage"
    (package / "Data").mkdir(parents=True)
    with pytest.raises(FormatError, match=rf"a package with {_MODEL}, found 0 other files"):
        load_session([package])
    assert run("summary", package).code != 0


@pytest.mark.parametrize("length", [0, 1, 40, 300, 700])
def test_damaged_model_is_refused_with_its_place(tmp_path: Path, length: int) -> None:
    package = _package(tmp_path, "linear")
    data = (package / _MODEL).read_bytes()
    (package / _MODEL).write_bytes(data[:length])
    with pytest.raises(FormatError) as refused:
        load_session([package])
    assert "linear.mlpackage" in str(refused.value)
    assert "model.mlmodel" in str(refused.value)


def test_sizes_beyond_those_of_programs_are_refused(tmp_path: Path) -> None:
    kind = tensor_type(11, 1 << 40, 1 << 40)
    block = body(2, "y") + body(3, operation("relu", "y", {"x": argument("x")}))
    path = tmp_path / "huge.mlmodel"
    path.write_bytes(model(block, named("x", kind)))
    with pytest.raises(FormatError, match="sizes of 31 bits"):
        load_session([path])


def test_links_out_of_a_package_are_not_followed(tmp_path: Path) -> None:
    package = _package(tmp_path, "linear")
    secret = tmp_path / "secret"
    secret.write_bytes(b"not of the package" * 100)
    (package / "Data/link.bin").symlink_to(secret)
    assert b"not of the package" not in bytes(vendor_program(package))
