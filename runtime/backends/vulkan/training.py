"""Training operators of the Vulkan delegate.

Source: backends/vulkan/runtime/graph/ops/impl/FusedCe.cpp, AdamwStep.cpp, LinearDw.cpp of 1.5.1
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


def _fused_ce(logits: Tensor, labels: Tensor, valid: float) -> tuple[Tensor, Tensor]:
    """Return cross entropy and its gradient; negative labels are left out."""
    known = labels >= 0
    index = labels.clamp(min=0).long()
    log_sum = torch.logsumexp(logits, -1)
    picked = logits.gather(-1, index[:, None]).squeeze(-1)
    loss = torch.where(known, (log_sum - picked) / valid, 0.0).sum()
    one_hot = torch.nn.functional.one_hot(index, logits.shape[-1])
    gradient = (torch.softmax(logits, -1) - one_hot) / valid
    return loss, torch.where(known[:, None], gradient, 0.0)


def _adamw_step(  # noqa: PLR0913 - of the operator
    weight: Tensor,
    first: Tensor,
    second: Tensor,
    gradient: Tensor,
    rate: float,
    beta1: float,
    beta2: float,
    eps: float,
    decay: float,
    correction1: float,
    correction2: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Update weight and moments in place."""
    weight.mul_(1.0 - rate * decay)
    first.mul_(beta1).add_(gradient, alpha=1.0 - beta1)
    second.mul_(beta2).addcmul_(gradient, gradient, value=1.0 - beta2)
    weight.addcdiv_(first / correction1, (second / correction2).sqrt() + eps, value=-rate)
    return weight, first, second


def _linear_dw(made: Tensor, x: Tensor) -> Tensor:
    return made.flatten(0, -2).t() @ x.flatten(0, -2)


TABLE: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(("et_vk.adamw_step.default", "adamw_step.default"), _adamw_step),
    "et_vk.fused_ce.default": _fused_ce,
    "et_vk.linear_dW.default": _linear_dw,
}
