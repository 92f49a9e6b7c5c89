"""Compares our Vulkan operators with the package's references, in a process with the package.

Prints one JSON object: names of the registry, those without an operator here, and by operator the
largest difference over all cases.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

import executorch.backends.vulkan.custom_ops_lib  # noqa: F401 - registers the operators
import torch
from executorch.backends.vulkan.op_registry import vulkan_supported_ops
from executorch.backends.vulkan.patterns.weight_packing_utils import pack_4bit_weight_tensor

from runtime.backends.graph.torch_call import torch_operator
from runtime.backends.vulkan.backend import OWN

ET: Any = torch.ops.et_vk
SCALES = ((0.02, 3, 0.05, -7), (0.5, -128, 0.1, 127), (1e-3, 0, 0.01, 0))


def names() -> list[str]:
    """Return the names of the registry as payloads have them."""
    return sorted(
        f"{key.replace('::', '.')}.default" if isinstance(key, str) else key.__name__
        for key in vulkan_supported_ops
    )


def _int8(*sizes: int) -> torch.Tensor:
    made = torch.randint(-128, 128, sizes, dtype=torch.int8)
    made.view(-1)[0], made.view(-1)[-1] = -128, 127
    return made


def _channels(count: int) -> torch.Tensor:
    return torch.rand(count) * 0.1 + 1e-3


def cases() -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Yield operators with their arguments."""
    for seed, (scale, zero, out_scale, out_zero) in enumerate(SCALES):
        torch.manual_seed(seed)
        quantum = scale, zero
        given = *quantum, out_scale, out_zero
        x = _int8(2, 8, 5, 6)
        yield "q8ta_relu", (x, *given)
        yield "q8ta_add", (x, _int8(2, 8, 5, 6), *quantum, 0.03, 5, out_scale, out_zero, 1.5)
        yield "q8ta_pixel_shuffle", (x, *quantum, 1 / out_scale, out_zero, 2)
        rows, bias = _int8(3, 16), torch.randn(12)
        weight, sums, scales = _int8(12, 16), torch.zeros(12, dtype=torch.int32), _channels(12)
        weight = weight.clamp(min=-127)
        for activation in ("none", "relu"):
            own = (rows, *quantum, weight, sums, scales, out_scale, out_zero, bias, activation)
            yield "q8ta_linear", own
            yield "q8ta_linear_gemv", own
            for stride, padding, dilation in (((1, 1), (0, 0), (1, 1)), ((2, 1), (1, 2), (1, 2))):
                place = list(stride), list(padding), list(dilation)
                wide = _int8(8, 8).clamp(min=-127), torch.zeros(8, dtype=torch.int32), _channels(8)
                shared = out_scale, out_zero, torch.randn(8)
                point = (x, *quantum, *wide, *shared, [1, 1], *place, 1, activation)
                yield "q8ta_conv2d_pw", point
                yield "q8ta_conv2d", point
                deep = _int8(3, 3, 8).clamp(min=-127), *wide[1:]
                yield "q8ta_conv2d_dw", (x, *quantum, *deep, *shared, [3, 3], *place, 8, activation)
        latent = torch.randn(12, 32)
        packed = pack_4bit_weight_tensor(torch.randint(-8, 8, (12, 32), dtype=torch.int8))
        groups = torch.rand(4, 12) * 0.1
        yield "linear_q4gsw", (torch.randn(3, 32), packed, groups, 8, bias)
        yield "linear_q4gsw_backward", (torch.randn(3, 12), packed, groups, 8)
        yield "q4gsw_requant", (latent, groups, 8)
        for linear in (True, False):
            table = torch.rand(12, 4), 8, torch.randint(0, 12, (2, 5)), linear
            yield "embedding_q4gsw", (packed, *table)
        yield "rms_norm", (torch.randn(2, 3, 16), torch.randn(16), 1e-5)
        yield "grid_priors", (torch.randn(1, 2, 3, 5), 8, 0.5)
        image, kernel = torch.randn(1, 4, 6, 6), torch.randn(6, 4, 3, 3)
        options = [1, 1], [1, 1], [1, 1], False, [0, 0], 1
        for low, high in ((0.0, 6.0), (-0.5, float("inf"))):
            yield "conv_with_clamp", (image, kernel, torch.randn(6), *options, low, high)
        heads = torch.randn(2, 4, 6, 8), torch.randn(2, 4, 6, 8), torch.randn(2, 4, 6, 8)
        yield "sdpa", (*heads, None, None)
        yield "sdpa", (*heads, torch.randn(6, 6), 0.3)
        q, k = torch.randn(1, 5, 4, 8), torch.randn(1, 5, 2, 8)
        yield "apply_rotary_emb", (q, k, torch.randn(5, 4), torch.randn(5, 4))
        for width in (8, 6):
            yield "apply_rotary_emb_hf", (q, k, torch.randn(9, width), torch.randn(9, width), 3)
        yield "apply_rotary_emb_interleaved", (torch.randn(2, 5, 8), torch.randn(5, 8))
        labels = torch.tensor([2, -1, 0, 6])
        yield "fused_ce", (torch.randn(4, 7), labels, 3.0)
        yield "linear_dW", (torch.randn(2, 3, 4), torch.randn(2, 3, 5))
        moments = [torch.randn(4, 3) for _ in range(2)] + [torch.rand(4, 3), torch.randn(4, 3)]
        yield "adamw_step", (*moments, 1e-2, 0.9, 0.99, 1e-8, 0.1, 0.5, 0.3)
        yield "prepack", (image,)


def _copied(given: tuple[Any, ...]) -> list[Any]:
    return [one.clone() if isinstance(one, torch.Tensor) else one for one in given]


def _difference(name: str, given: tuple[Any, ...]) -> float:
    stock = getattr(ET, name)(*_copied(given))
    ours = OWN[f"et_vk.{name}.default"](*_copied(given))
    pairs = zip(stock, ours, strict=True) if isinstance(stock, tuple) else [(stock, ours)]
    return max(float((a.double() - b.double()).abs().max()) for a, b in pairs)


def main() -> None:
    """Compare all cases."""
    found: dict[str, float] = {}
    for name, given in cases():
        found[name] = max(found.get(name, 0.0), _difference(name, given))
    known = names()
    missing = [n for n in known if n not in OWN and torch_operator(n) is None and n != "getitem"]
    sys.stdout.write(json.dumps({"registry": known, "missing": missing, "differences": found}))


main()
