"""The Vulkan table beside the registry and the reference operators of the stock package."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

pytestmark = [pytest.mark.interop, pytest.mark.slow]
ROOT = Path(__file__).resolve().parents[3]


def test_each_operator_of_the_registry_is_known_and_the_delegates_own_equal_the_references() -> (
    None
):
    asked = [sys.executable, "-m", "tests.runtime.graph.vendor_operators"]
    found = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr[-2000:]
    answer = json.loads(found.stdout)
    assert answer["missing"] == []
    spaces = Counter(name.split(".")[0] for name in answer["registry"] if name.count(".") == 2)
    assert spaces == {
        "aten": 99,
        "dim_order_ops": 2,
        "et_vk": 26,
        "llama": 3,
        "quantized_decomposed": 11,
        "torchao": 3,
    }
    # without those whose references are not what the shaders compute (docs/backends.md)
    assert len(answer["differences"]) == 23
    assert {name: gap for name, gap in answer["differences"].items() if gap > 1e-6} == {}
