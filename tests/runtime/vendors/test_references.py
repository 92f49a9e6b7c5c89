"""Kernels of vendors' operators equal the vendors' references, operator by operator."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from runtime.kernels.vendors import cadence, cortex_m
from tests.architecture.tree import ROOT

pytestmark = [pytest.mark.interop, pytest.mark.slow]


def test_each_operator_with_a_reference_equals_it_bit_by_bit() -> None:
    asked = [sys.executable, "-m", "tests.runtime.vendors.references"]
    found = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr[-2000:]
    answer = json.loads(found.stdout.splitlines()[-1])
    assert answer["missing"] == answer["not tried"] == []
    assert {name: gap for name, gap in answer["gaps"].items() if gap} == {}
    assert len(answer["gaps"]) == len(cadence.TABLE) - 3 + len(cortex_m.TABLE) == 110
    # masks that the reference accepts only as None, and results of another name
    assert answer["schemas"]["cortex_m"] == {}
    assert {*answer["schemas"]["cadence"]} == {
        "cadence::quantized_softmax.out",
        "cadence::quantized_softmax.per_tensor_out",
        "cadence::quantized_w8a32_linear.out",
        "cadence::quantized_w8a32_conv.out",
    }
