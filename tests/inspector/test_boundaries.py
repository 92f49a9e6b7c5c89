"""What crosses the boundaries of delegates, from compiled programs of either compiler."""

from __future__ import annotations

import pytest

from inspector.files.load import load_session
from inspector.graph.boundaries import is_quantization
from schema.program import instructions
from schema.program import model as m
from tests.inspector.plan_boundaries import program_boundaries
from tests.inspector.sessions import DATA

SESSIONS = sorted((DATA / "corpus" / "v1.5.1").iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("folder", SESSIONS, ids=lambda folder: folder.name)
def test_boundaries_are_those_of_delegate_calls(folder) -> None:
    session = load_session([str(folder)])
    program = session.program
    if program is None:
        pytest.skip("a session without a program")
    for method in session.methods:
        plan = program.plan(method)
        calls = [i for *_, i in instructions(plan) if isinstance(i.instr_args, m.DelegateCall)]
        found = program_boundaries(program, method)
        numbers = {one for b in found for one in (b.source, b.target) if one is not None}
        assert numbers == set(range(len(calls)))
        assert len({(b.source, b.target) for b in found}) == len(found)
        for one in found:
            assert one.source != one.target
            assert one.nbytes is None or one.nbytes == sum(v.nbytes or 0 for v in one.values)
            assert 0 <= one.layout_copies <= 2 * len(one.values)


def test_image_enters_a_network_and_is_transposed_once() -> None:
    folder = next(one for one in SESSIONS if one.name.startswith("convnet_xnnpack"))
    session = load_session([str(folder)])
    assert session.program is not None
    first, *_ = program_boundaries(session.program, "forward")
    assert (first.source, first.target, first.is_end) == (None, 0, True)
    (image,) = first.values
    assert image.kind.startswith("float32[1, 3, ")
    assert image.layout_copies == 1


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("quantized_decomposed.quantize_per_tensor.default", True),
        ("quantized_decomposed::dequantize_per_channel.out", True),
        ("torchao.choose_qparams_affine.default", True),
        ("aten.add.Tensor", False),
        ("dequantize", False),
    ],
)
def test_operators_that_quantize_are_told_by_name(name: str, wanted: bool) -> None:
    assert is_quantization(name) == wanted
