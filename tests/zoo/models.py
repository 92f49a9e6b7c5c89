"""The architectures by name; all weights and inputs are random and the same in every process."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tests.zoo.sequences import SEQUENCES
from tests.zoo.vision import VISION

MODELS = {**VISION, **SEQUENCES}


def make(name: str) -> tuple[nn.Module, tuple[Tensor, ...]]:
    """Return a network in evaluation mode, and its inputs."""
    torch.manual_seed(0)
    model, inputs = MODELS[name]()
    model.eval()
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    return model, inputs
