"""Programs among the test data that the stock compiler delegated to XNNPACK."""

from __future__ import annotations

from pathlib import Path

import torch

DATA = Path(__file__).resolve().parents[2] / "data"
SESSIONS = (
    "corpus/payloads/m2_xnn.pte",
    "corpus/payloads/xnnpack.pte",
    "corpus/payloads/xnnpack_q8.pte",
    "corpus/special/xnnpack_int8_static/model.pte",
    "corpus/special/xnnpack_two_delegates/model.pte",
    "corpus/v1.0.1/convnet_xnnpack/model.pte",
    "corpus/v1.0.1/mm_xnnpack/model.pte",
    "corpus/v1.0.1/tinygpt_xnnpack/model.pte",
    "corpus/v1.5.1/convnet_xnnpack/model.pte",
    "corpus/v1.5.1/mm_xnnpack/model.pte",
    "corpus/v1.5.1/tinygpt_xnnpack/model.pte",
    "extra/inline_delegate/model.pte",
    "extra/two_methods_xnnpack/model.pte",
    "extra/xnnpack_8da4w/model.pte",
    "extra/xnnpack_dynamic_quantised/model.pte",
    "extra/xnnpack_split/model.pte",
    "old/program_inline_xh00.pte",
    "old/program_inline_xn00.pte",
)
# Nothing but partitions decides about their outputs.
WHOLE = (
    "corpus/payloads/xnnpack.pte",
    "corpus/payloads/xnnpack_q8.pte",
    "corpus/special/xnnpack_int8_static/model.pte",
    "extra/inline_delegate/model.pte",
    "extra/two_methods_xnnpack/model.pte",
    "extra/xnnpack_8da4w/model.pte",
)


def gap(ours: torch.Tensor, stock: torch.Tensor) -> float:
    """Return the largest difference in units of the largest stock element."""
    assert (ours.dtype, ours.shape) == (stock.dtype, stock.shape)
    if not stock.numel():
        return 0.0
    assert torch.equal(torch.isnan(ours), torch.isnan(stock))
    a, b = ours.double().nan_to_num(0), stock.double().nan_to_num(0)
    return float((a - b).abs().max() / b.abs().max().clamp(min=1e-30))
