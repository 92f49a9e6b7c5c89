"""Programs that a quantizer leaves as they are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import torch

from inspector.worker.exporter import Say

_STORED = (torch.int8, torch.uint8)
_TEXT = "the quantizer has quantized nothing: it takes no operator of this program"


def warn_of_unquantized(before: Mapping[str, Any], after: Mapping[str, Any], notify: Say) -> None:
    """Warn of each method that a quantizer has left without a quantized value or weight.

    Args:
        before: exported programs by method
        after: what the quantizer has made of them
        notify: called with messages
    """
    for method, program in after.items():
        if _traces(program) <= _traces(before[method]):
            notify("warning", text=f"{method}: {_TEXT}", file="", line=0)


def _traces(program: Any) -> Counter[str]:  # noqa: ANN401 - an exported program
    """Return what shows that a program is quantized: operators, and constants of bytes."""
    operators = [str(node.target) for node in program.graph.nodes if "quant" in str(node.target)]
    stored = {**program.state_dict, **program.constants}
    names = [name for name, value in stored.items() if getattr(value, "dtype", None) in _STORED]
    return Counter(operators + names)
