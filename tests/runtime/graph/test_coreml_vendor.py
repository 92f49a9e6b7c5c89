"""Each operator beside what coremltools makes of constants; needs coremltools."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import pytest
import torch

from runtime.backends.coreml.binding import OPERATORS, bind_operator
from runtime.backends.graph.operation import Fixed
from schema.graph import Argument, Graph, GraphNode, NodeKind

np = pytest.importorskip("numpy")
pytestmark = [
    pytest.mark.vendor,
    pytest.mark.filterwarnings("ignore"),
]
if not os.environ.get("VENDORS_IN_PROCESS"):
    # coremltools imports executorch, which registers operators that other tests declare as well.
    pytest.skip("coremltools is imported by make backends only", allow_module_level=True)
pytest.importorskip("coremltools", reason="coremltools is not installed")

_GENERATOR = np.random.default_rng(3)
X = _GENERATOR.normal(size=(2, 3, 4)).astype(np.float32)
Y = _GENERATOR.normal(size=(3, 4)).astype(np.float32)
P = np.abs(X) + np.float32(0.3)
UNIT = np.clip(X / 3, -0.9, 0.9)
N = _GENERATOR.integers(-5, 6, (2, 3, 4)).astype(np.int32)
M = np.where(_GENERATOR.integers(-4, 5, (3, 4)) == 0, 2, 3).astype(np.int32)
B = X > 0
I = np.array([2, 0, 1], np.int32)  # noqa: E741 - indices
_ONE = (
    "abs ceil cos cosh erf exp exp2 floor relu relu6 round sigmoid sign sin sinh sqrt square tan "
    "tanh"
)
_UNIT = "acos asin atan atanh"
_TWO = (
    "add sub mul real_div maximum minimum equal not_equal less less_equal greater greater_equal "
    "floor_div mod"
)
_REDUCED = "l1_norm l2_norm log_sum log_sum_exp max mean min prod sum sum_square"
Case = tuple[str, Mapping[str, Any]]


_OTHERS: list[Case] = [
    ("logical_not", {"x": B}),
    ("softplus", {"x": X}), ("softsign", {"x": X}), ("softmax", {"x": X, "axis": 1}),
    ("pow", {"x": P, "y": Y}), ("select", {"cond": B, "a": X, "b": -X}),
    ("clip", {"x": X, "alpha": -0.5, "beta": 0.25}), ("threshold", {"x": X, "alpha": 0.1}),
    ("clamped_relu", {"x": X, "alpha": 0.3, "beta": 0.5}),
    ("clamped_relu", {"x": X, "alpha": -0.7, "beta": 0.2}),
    ("elu", {"x": X, "alpha": 0.7}), ("leaky_relu", {"x": X, "alpha": 0.2}),
    ("linear_activation", {"x": X, "alpha": 2.0, "beta": 0.5}),
    ("scaled_tanh", {"x": X, "alpha": 2.0, "beta": 0.5}),
    ("sigmoid_hard", {"x": X, "alpha": 0.3, "beta": 0.5}),
    ("thresholded_relu", {"x": X.copy(), "alpha": 0.4}),
    ("prelu", {"x": X[:, :, None], "alpha": np.array([0.1, 0.2, 0.3], np.float32)}),
    ("softplus_parametric", {"x": X, "alpha": np.array([0.1, 0.2, 0.3], np.float32),
                             "beta": np.array([1, 2, 3], np.float32)}),
    ("gelu", {"x": X, "mode": "EXACT"}), ("gelu", {"x": X, "mode": "TANH_APPROXIMATION"}),
    ("gelu", {"x": X, "mode": "SIGMOID_APPROXIMATION"}),
    ("log", {"x": P, "epsilon": 0.1}), ("log", {"x": P * 0}), ("rsqrt", {"x": P}),
    ("rsqrt", {"x": P, "epsilon": 0.1}), ("inverse", {"x": P}),
    ("cast", {"x": X * 3, "dtype": "int32"}), ("cast", {"x": X * 3, "dtype": "bool"}),
    ("cast", {"x": N, "dtype": "fp32"}), ("cast", {"x": B, "dtype": "int32"}),
    ("linear", {"x": X, "weight": Y, "bias": I.astype(np.float32)}),
    ("matmul", {"x": X, "y": Y, "transpose_y": True}),
    ("matmul", {"x": X, "y": X, "transpose_x": True}),
    ("l2_norm", {"x": X, "epsilon": 1e-3}), ("l2_norm", {"x": X[None], "epsilon": 1e-3}),
    ("layer_norm", {"x": X, "axes": [-1], "gamma": Y[0], "beta": Y[1], "epsilon": 1e-3}),
    ("layer_norm", {"x": X, "axes": [1, 2], "gamma": Y, "epsilon": 1e-5}),
    ("layer_norm", {"x": X, "axes": [1], "gamma": Y[:, 0], "epsilon": 1e-5}),
    ("band_part", {"x": X, "lower": 0, "upper": -1}),
    ("band_part", {"x": X, "lower": 1, "upper": 0}),
    ("cumsum", {"x": X, "axis": 1}), ("cumsum", {"x": N, "axis": -1, "reverse": True}),
    ("fill", {"shape": [2, 3], "value": 1.5}), ("fill_like", {"ref_tensor": X, "value": 2}),
    ("non_zero", {"x": N}), ("range_1d", {"start": 1, "end": 9, "step": 3}),
    ("range_1d", {"start": 0.0, "end": 1.0, "step": 0.25}),
    ("pad", {"x": X, "pad": [1, 2, 0, 1], "mode": "constant", "constant_val": 3.0}),
    ("pad", {"x": X, "pad": [1, 2, 0, 1], "mode": "reflect"}),
    ("pad", {"x": X, "pad": [2, 1], "mode": "replicate"}),
    ("pad", {"x": X[None], "pad": [1, 1, 1, 2], "mode": "reflect"}),
    ("pad", {"x": X[None, None], "pad": [1, 0, 0, 2], "mode": "replicate"}),
    ("tile", {"x": X, "reps": [1, 2, 3]}), ("argsort", {"x": X, "axis": 1}),
    ("argsort", {"x": X, "axis": -1, "ascending": True}),
    ("topk", {"x": X, "k": 2, "axis": 1}),
    ("topk", {"x": X, "k": 3, "axis": -1, "ascending": True}),
    ("flatten2d", {"x": X, "axis": 1}), ("flatten2d", {"x": X, "axis": -1}),
    ("shape", {"x": X}),
    ("concat", {"values": [X, X * 2], "axis": 1}),
    ("stack", {"values": [Y, Y + 1], "axis": -1}),
    ("split", {"x": X, "axis": 2, "num_splits": 2}),
    ("split", {"x": X, "axis": -2, "split_sizes": [1, 2]}),
    ("expand_dims", {"x": X, "axes": [0, -1]}), ("expand_dims", {"x": Y, "axes": [-2, 1]}),
    ("reshape", {"x": X, "shape": [3, -1]}), ("reshape", {"x": X, "shape": [0, -1, 0]}),
    ("reverse", {"x": X, "axes": [0, -1]}), ("reverse", {"x": X}),
    ("squeeze", {"x": X[:, :1], "axes": [1]}), ("transpose", {"x": X, "perm": [2, 0, 1]}),
    ("transpose", {"x": X, "perm": [-1, 0, 1]}), ("identity", {"x": X}),
    ("slice_by_index", {"x": X, "begin": [0, 1, -3], "end": [2, 3, 4]}),
    ("slice_by_index", {"x": X, "begin": [0, 2, 3], "end": [1, 0, 0], "stride": [1, -1, -2],
                        "end_mask": [False, True, True]}),
    ("slice_by_index", {"x": X, "begin": [1, -1, 0], "end": [0, 0, 4],
                        "squeeze_mask": [True, True, False]}),
    ("slice_by_index", {"x": X, "begin": [0, -1, 0], "end": [0, 0, 3], "stride": [1, -1, 2],
                        "begin_mask": [True, True, False], "end_mask": [True, True, False]}),
    ("slice_by_size", {"x": X, "begin": [0, -2, 1], "size": [-1, 1, 2]}),
    ("slice_update", {"x": X, "update": Y[None, :, :2], "begin": [1, 0, 0], "end": [2, 3, 4],
                      "stride": [1, 1, 2]}),
    ("gather", {"x": X, "indices": I[:2], "axis": 1}),
    ("gather", {"x": X, "indices": I[None], "axis": -1}),
    ("gather", {"x": X, "indices": np.array([[0, 2], [1, 1]], np.int32), "axis": 1,
                "batch_dims": 1}),
    ("gather_along_axis", {"x": X, "indices": np.tile(I[None, :, None], (2, 1, 4)), "axis": 1}),
    ("scatter_along_axis", {"data": X, "indices": np.tile(I[None, :, None], (2, 1, 4)),
                            "updates": X * 5, "axis": 1, "mode": "update"}),
    ("scaled_dot_product_attention", {"query": X, "key": X + 1, "value": X * 2}),
    ("scaled_dot_product_attention", {"query": X, "key": X, "value": X,
                                      "attn_mask": np.tril(np.ones((3, 3), bool))}),
    ("quantize", {"input": X, "scale": np.float32(0.03), "output_dtype": "int8"}),
    ("quantize", {"input": X, "scale": np.array([0.01, 0.02, 0.05], np.float32), "axis": 1,
                  "zero_point": np.array([3, 100, 255], np.uint8), "output_dtype": "uint8"}),
]  # fmt: skip


def _cases() -> list[Case]:
    found: list[Case] = [(name, {"x": P if name == "sqrt" else X}) for name in _ONE.split()]
    found += [(name, {"x": UNIT}) for name in _UNIT.split()]
    found += [(name, {"x": X, "y": Y}) for name in _TWO.split()]
    found += [(name, {"x": N, "y": M}) for name in _TWO.split() if name != "real_div"]
    found += [(f"logical_{one}", {"x": B, "y": B[:, :1]}) for one in ("and", "or", "xor")]
    for name in _REDUCED.split():
        found += [(f"reduce_{name}", {"x": P, "axes": [-1, 0]})]
        found += [(f"reduce_{name}", {"x": P, "axes": [1], "keep_dims": True})]
    for name in ("reduce_argmax", "reduce_argmin"):
        found += [(name, {"x": X, "axis": axis, "keep_dims": axis > 0}) for axis in (-1, 0, 1)]
    return [*found, *_OTHERS]


def _reference(name: str, given: Mapping[str, Any]) -> list[Any]:
    """Return what coremltools makes of an operator whose inputs are constants."""
    import coremltools as ct
    from coremltools.converters.mil import Builder as mb  # noqa: N813 - its documented name

    made: list[Any] = []

    @mb.program(input_specs=[mb.TensorSpec((1,))], opset_version=ct.target.iOS18)
    def program(x: Any) -> Any:
        found = getattr(mb, name)(**given)
        made.extend(found if isinstance(found, (tuple, list)) else [found])
        return x

    del program
    return [one.val for one in made]


def _bound(name: str, given: Mapping[str, Any]) -> list[Any]:
    """Return what our operator makes of the same, bound as in a program."""
    listed = {one: value for one, value in given.items() if one == "values"}
    arguments = tuple(
        Argument(one, (), value.tolist() if hasattr(value, "tolist") else value)
        for one, value in given.items()
        if one not in listed
    )
    if listed:
        tensors = [torch.from_numpy(one) for one in listed["values"]]
        made = OPERATORS[name](tensors, **{one.name: one.literal for one in arguments})
    else:
        node = GraphNode("n", NodeKind.CALL, name, arguments, ("y",))
        operation = bind_operator(node, Graph("g", (node,), {"y": _value("y")}))
        assert operation is not None
        made = operation.run(*[_taken(one) for one in operation.operands])
    return list(made) if isinstance(made, (tuple, list)) else [made]


def _value(name: str) -> Any:
    from schema.graph import GraphValue, TensorMeta

    return GraphValue(name, TensorMeta(6, ()))


def _taken(operand: Any) -> Any:
    assert isinstance(operand, Fixed)
    return operand.value


@pytest.mark.parametrize(
    ("name", "given"), _cases(), ids=lambda one: one if isinstance(one, str) else ""
)
def test_operator_equals_the_vendors_evaluation(name: str, given: Mapping[str, Any]) -> None:
    expected, made = _reference(name, given), _bound(name, given)
    assert len(made) >= len(expected)
    for right, found in zip(expected, made, strict=False):
        assert right is not None, "coremltools computes it only on a device"
        real = torch.as_tensor(np.ascontiguousarray(right)).reshape(np.shape(right))
        held = torch.as_tensor(found).to(real.dtype)
        assert held.shape == real.shape
        torch.testing.assert_close(held, real, rtol=2e-6, atol=2e-6)


def _compressed() -> list[tuple[str, tuple[Any, ...], dict[str, Any]]]:
    data = _GENERATOR.integers(-128, 128, (4, 6)).astype(np.int8)
    mask = (_GENERATOR.random((4, 6)) > 0.5).astype(np.uint8)
    scale = _GENERATOR.random((2, 3)).astype(np.float32)
    few = _GENERATOR.integers(0, 4, (4, 6)).astype(np.uint8)
    lut = _GENERATOR.random((2, 1, 4, 1)).astype(np.float32)
    vectors = _GENERATOR.random((1, 3, 4, 2)).astype(np.float32)
    count = int(mask.sum())
    nonzero = data.reshape(-1)[:count]
    found: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
        ("affine_dequantize", (data, np.int8(3), np.float32(0.1), 0), {}),
        ("affine_dequantize", (data, data[0], _GENERATOR.random(6).astype(np.float32), 1), {}),
        ("blockwise_shift_scale", (data, scale, None), {}),
        ("blockwise_shift_scale", (data, scale, data[:2, :3]), {}),
        ("lut_to_dense", (few, lut, None), {}),
        ("lut_to_dense", (few, vectors, 0), {}), ("lut_to_dense", (few, vectors, 1), {}),
        ("lut_to_dense", (few, vectors, -1), {}),
        ("sparse_to_dense", (nonzero, mask), {}),
        ("sparse_blockwise_shift_scale", (mask, nonzero, scale, data[:2, :3]), {}),
        ("lut_to_sparse", (mask, few.reshape(-1)[:count], lut, None), {}),
        ("lut_to_sparse", (mask, few.reshape(-1)[:count], vectors, 1), {}),
    ]  # fmt: skip
    return found


@pytest.mark.parametrize("index", range(12))
def test_compressed_weight_equals_the_vendors(index: int) -> None:
    from coremltools.converters.mil.mil.ops.defs.iOS16 import constexpr_ops as old
    from coremltools.converters.mil.mil.ops.defs.iOS18 import compression as new

    name, given, _ = _compressed()[index]
    source = old if name == "affine_dequantize" else new
    expected = getattr(source, f"constexpr_{name}").decompress(*given)
    run: Callable[..., Any] = OPERATORS[f"constexpr_{name}"]
    tensors = [one if isinstance(one, (int, type(None))) else torch.as_tensor(one) for one in given]
    if name == "lut_to_dense":
        tensors.insert(2, None)  # the shape, of programs before iOS 18
    made = run(*tensors)
    rights = expected if isinstance(expected, tuple) else (expected,)
    founds = made if isinstance(made, tuple) else (made,)
    for right, found in zip(rights, founds, strict=True):
        real = torch.as_tensor(np.ascontiguousarray(right)).reshape(np.shape(right))
        torch.testing.assert_close(found.to(real.dtype), real, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("bits", [1, 2, 4, 6, 8])
def test_packed_tables_and_masks_before_ios_18_equal_the_vendors(bits: int) -> None:
    from coremltools.converters.mil.mil.ops.defs.iOS16 import constexpr_ops as old
    from coremltools.optimize import _utils

    shape = (5, 7)
    values = _GENERATOR.integers(0, 1 << bits, shape).astype(np.uint8)
    lut = _GENERATOR.random(1 << bits).astype(np.float16)
    packed = _utils.pack_elements_into_bits(values, bits)
    expected = old.constexpr_lut_to_dense.decompress(lut, packed, np.array(shape))
    run = OPERATORS["constexpr_lut_to_dense"]
    made = run(torch.as_tensor(packed), torch.as_tensor(lut), list(shape))
    assert torch.equal(made, torch.as_tensor(expected))
    mask = (values > (1 << bits) // 2).astype(np.uint8)
    data = np.arange(1, int(mask.sum()) + 1).astype(np.float32)
    bitmask = np.packbits(mask.reshape(-1), bitorder="little")
    sparse = OPERATORS["constexpr_sparse_to_dense"]
    dense = sparse(torch.as_tensor(data), torch.as_tensor(bitmask), list(shape))
    padded = np.zeros(shape, np.float32)
    padded[mask != 0] = data
    assert torch.equal(dense, torch.as_tensor(padded))
