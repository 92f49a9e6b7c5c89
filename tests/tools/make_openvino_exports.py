"""Export small models as OpenVINO writes them: python make_openvino_exports.py OUT_DIR.

Runs in an environment with numpy and the wanted openvino release, which goes into the file names;
nothing of this project is imported. The bytes are what the OpenVINO delegate keeps as its payload.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov

try:
    from openvino import opset13 as op
except ImportError:  # releases before 2025
    from openvino.runtime import opset13 as op

FLOAT = np.float32
SEED = 7


def main() -> int:
    """Write an export of every model into the folder named on the command line."""
    out = Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    release = ov.__version__.split("-")[0]
    core = ov.Core()
    for model in (conv(), dynamic(), quantized(), branches(), state(), four_bits()):
        export = core.compile_model(model, "CPU").export_model()
        data = export.getvalue() if hasattr(export, "getvalue") else bytes(export)
        name = f"{release}_{model.get_friendly_name()}.blob"
        (out / name).write_bytes(data)
        print(name, len(data))  # noqa: T201
    return 0


def numbers(*shape: int) -> Any:
    return np.random.default_rng(SEED).random(shape).astype(FLOAT)


def conv() -> ov.Model:
    x = op.parameter([1, 3, 8, 8], FLOAT, name="x")
    weight = op.constant(numbers(8, 3, 3, 3), name="weight")
    made = op.convolution(x, weight, [1, 1], [1, 1], [1, 1], [1, 1], name="conv")
    return ov.Model([op.relu(made, name="relu")], [x], "conv")


def dynamic() -> ov.Model:
    a = op.parameter([-1, 4], FLOAT, name="a")
    b = op.parameter([-1, 4], FLOAT, name="b")
    rows = [op.add(a, b, name="sum"), op.multiply(a, b, name="product")]
    return ov.Model(rows, [a, b], "dynamic")


def _scaled(x: Any, weight: Any, name: str) -> ov.Model:
    scaled = op.multiply(op.convert(weight, FLOAT), op.constant(numbers(8, 1)))
    return op.matmul(x, scaled, False, True, name=name)


def quantized() -> ov.Model:
    x = op.parameter([1, 4], FLOAT, name="x")
    low, high = FLOAT(-1), FLOAT(1)
    rounded = op.fake_quantize(x, low, high, low, high, 256, name="rounded")
    raw = np.random.default_rng(SEED).integers(-127, 127, (8, 4)).astype(np.int8)
    fc = _scaled(rounded, op.constant(raw, name="weight"), "fc")
    return ov.Model([fc], [x], "quantized")


def four_bits() -> ov.Model:
    x = op.parameter([1, 32], FLOAT, name="x")
    raw = np.random.default_rng(SEED).integers(0, 255, (8, 16)).astype(np.uint8)
    weight = ov.Tensor(raw, ov.Shape([8, 32]), ov.Type.u4)
    return ov.Model([_scaled(x, op.constant(weight, name="weight"), "fc")], [x], "four_bits")


def branches() -> ov.Model:
    choice = op.parameter([], np.bool_, name="choice")
    x = op.parameter([2], FLOAT, name="x")
    yes, no = op.parameter([2], FLOAT, name="yes"), op.parameter([2], FLOAT, name="no")
    then = ov.Model([op.sin(yes, name="sine")], [yes], "then")
    other = ov.Model([op.add(no, op.constant(np.array([1, 2], FLOAT)), name="sum")], [no], "other")
    node = op.if_op(choice)
    node.set_friendly_name("either")
    node.set_then_body(then)
    node.set_else_body(other)
    node.set_input(x.output(0), yes, no)
    made = node.set_output(then.get_results()[0], other.get_results()[0])
    return ov.Model([made], [choice, x], "branches")


def state() -> ov.Model:
    x = op.parameter([1, 2], FLOAT, name="x")
    before = op.read_value(op.constant(np.zeros((1, 2), FLOAT)), "state")
    total = op.add(x, before, name="total")
    return ov.Model([op.result(total)], [op.assign(total, "state")], [x], "state")


if __name__ == "__main__":
    raise SystemExit(main())
