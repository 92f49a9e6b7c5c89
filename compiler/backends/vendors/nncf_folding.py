"""Weights that NNCF folds to wrong integers: they are left real, rounded as its quantizer does.

NNCF 3.1.0 stores every folded weight in -128..127, and subtracts its zero point after the scale.
The weight of a norm, which it quantizes in 0..255, would be halved: 255 is stored as 127.
"""

from __future__ import annotations

import contextlib
import importlib
import operator
from collections.abc import Generator
from typing import Any

import torch

_HOME = "nncf.experimental.torch.fx.quantization.quantize_pt2e"
_FOLD = "compress_post_quantize_transformation"
_STORED = (-128, 127)
_REAL = "rounded_"  # before the name of a weight that stays real
_PAIRS = {
    f"quantized_decomposed.de{name}": f"quantized_decomposed.{name}"
    for name in ("quantize_per_tensor.default", "quantize_per_channel.default")
}


@contextlib.contextmanager
def folding_right() -> Generator[None, None, None]:
    """Let NNCF fold only the weights that it folds to the integers it means."""
    home = importlib.import_module(_HOME)
    fold: Any = getattr(home, _FOLD, None)
    if fold is None:  # another release, which folds in another way
        yield
        return

    def folding(model: torch.fx.GraphModule) -> None:
        keep_real(model)
        fold(model)

    setattr(home, _FOLD, folding)
    try:
        yield
    finally:
        setattr(home, _FOLD, fold)


def keep_real(module: torch.fx.GraphModule) -> None:
    """Replace quantized weights that NNCF cannot fold by their rounded real values.

    Args:
        module: with pairs of quantization and dequantization of weights; changed
    """
    for node in [*module.graph.nodes]:
        before = _PAIRS.get(str(node.target))
        rounding = node.args[0] if before else None
        if not isinstance(rounding, torch.fx.Node) or str(rounding.target) != before:
            continue
        weight = rounding.args[0]
        if not isinstance(weight, torch.fx.Node) or weight.op != "get_attr":
            continue
        given = [_value(module, one) for one in rounding.args]
        low, high = given[-3], given[-2]
        if (low, high) == _STORED and not torch.as_tensor(given[2]).any():
            continue
        name = _REAL + str(weight.target).replace(".", "_")
        quantize: Any = rounding.target
        dequantize: Any = node.target
        module.register_buffer(name, dequantize(quantize(*given), *given[1:]))
        with module.graph.inserting_before(node):
            real = module.graph.get_attr(name)
        real.meta = dict(node.meta)
        node.replace_all_uses_with(real)
        module.graph.erase_node(node)
        if not rounding.users:
            module.graph.erase_node(rounding)
    module.recompile()


def _value(module: torch.fx.GraphModule, arg: Any) -> Any:  # noqa: ANN401 - of a node, or itself
    if isinstance(arg, torch.fx.Node) and arg.op == "get_attr":
        return operator.attrgetter(str(arg.target))(module).detach()
    return arg
