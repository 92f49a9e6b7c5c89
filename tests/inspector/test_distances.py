"""The documented distances in blocks have the bits of the formulas over whole tensors."""

from __future__ import annotations

import math

import pytest

torch = pytest.importorskip("torch")

from inspector.compat.devtools.numerical_comparator import (  # noqa: E402
    L1Comparator,
    MSEComparator,
    SNRComparator,
)
from inspector.rebuild.torch_bridge import later_copy  # noqa: E402

pytestmark = pytest.mark.slow
BLOCK = 1 << 16
SIZES = (1, 7, BLOCK - 1, BLOCK, BLOCK + 1, 5 * BLOCK + 321)
DTYPES = ("float32", "float64", "float16", "bfloat16", "int64", "int8", "uint8", "bool")


def whole(name, a, b):
    """Return the formula over whole tensors, infinities finite beside NaN."""
    x, y = (torch.as_tensor(each, dtype=torch.float64) for each in (a, b))
    x, y = (torch.nan_to_num(each) if torch.isnan(each).any() else each for each in (x, y))
    if name == "L1":
        return float((x - y).abs().sum())
    noise = ((x - y) ** 2).mean()
    return float(noise) if name == "MSE" else float(10 * torch.log10((x**2).mean() / noise))


def distances():
    return {"MSE": MSEComparator(), "L1": L1Comparator(), "SNR": SNRComparator()}


def agree(a, b):
    for name, distance in distances().items():
        found, wanted = distance.element_compare(a, b), whole(name, a, b)
        assert found == wanted or (math.isnan(found) and math.isnan(wanted)), name


def pair(dtype, *shape):
    made = torch.Generator().manual_seed(sum(shape))
    a = 40 * torch.rand(*shape, generator=made) - 20
    b = a + torch.rand(*shape, generator=made)
    return a.to(getattr(torch, dtype)), b.to(getattr(torch, dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", SIZES)
def test_blocks_have_the_bits_of_whole_tensors(dtype: str, size: int) -> None:
    agree(*pair(dtype, size))


def test_shapes_of_several_dimensions_and_other_element_types() -> None:
    a, b = pair("float32", 3, 300, 300)
    agree(a, b)
    agree(a, b.double())
    agree(a.half(), b)


@pytest.mark.parametrize(
    "odd", [float("nan"), float("inf"), float("-inf"), 1e200], ids=["nan", "inf", "-inf", "large"]
)
@pytest.mark.parametrize("where", ["first", "second", "both"])
def test_what_is_not_finite(odd: float, where: str) -> None:
    a, b = pair("float64", BLOCK + 9)
    b[3] = float("inf")
    for each, named in ((a, "first"), (b, "second")):
        if where in (named, "both"):
            each[-1] = odd
    agree(a, b)


def test_values_of_other_kinds() -> None:
    a, b = pair("float32", 4, 5)
    agree(a, b[0])
    agree(2.5, 3)
    agree(a, 1.0)
    agree(torch.zeros(0), torch.zeros(0))
    agree(torch.nn.Parameter(a).data, b)
    parameter = MSEComparator().element_compare(torch.nn.Parameter(a), b)
    assert parameter == whole("MSE", a, b)
    agree(a, a)


def test_layouts_keep_elements_beside_each_other() -> None:
    a, b = pair("float32", 2, 8, 60, 80)
    last = torch.channels_last
    both = MSEComparator().element_compare(a.to(memory_format=last), b.to(memory_format=last))
    mixed = MSEComparator().element_compare(a.to(memory_format=last), b)
    assert both == pytest.approx(whole("MSE", a, b), rel=1e-12)
    assert mixed == pytest.approx(whole("MSE", a, b), rel=1e-12)
    agree(a[:, ::2], b[:, ::2])


def test_inputs_stay_as_they_were_and_memory_is_used_again() -> None:
    distance = MSEComparator()
    for dtype in ("float64", "float32"):
        for size in (3 * BLOCK, 10):
            a, b = pair(dtype, size)
            kept = a.clone(), b.clone()
            assert distance.element_compare(a, b) == whole("MSE", a, b)
            assert torch.equal(a, kept[0])
            assert torch.equal(b, kept[1])


@pytest.mark.parametrize("kind", ["own memory", "view", "foreign memory", "number of dimensions 0"])
def test_a_later_copy_and_its_source_do_not_see_each_other_s_changes(kind: str) -> None:
    source = {
        "own memory": lambda: torch.arange(12.0).reshape(3, 4),
        "view": lambda: torch.arange(48.0).reshape(12, 4)[3:6],
        "foreign memory": lambda: torch.frombuffer(bytearray(48), dtype=torch.float32).view(3, 4),
        "number of dimensions 0": lambda: torch.tensor(3.0),
    }[kind]()
    wanted = source.clone()
    one, other = later_copy(source), later_copy(source)
    source.add_(1)
    assert torch.equal(one, wanted)
    other.numpy()[...] = -1
    assert torch.equal(one, wanted)
    assert torch.equal(source, wanted + 1)
    one.mul_(3)
    assert torch.equal(other, torch.full_like(wanted, -1))
