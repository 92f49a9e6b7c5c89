"""Adapters of low rank (LoRA): linear layers with a second, thin path beside their weight."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import torch
from torch import nn
from typing_extensions import override

from compiler.llm.config import LlmConfigError, LoraConfig
from compiler.llm.safetensors import CheckpointError, read_checkpoint

Tensor = torch.Tensor
ADAPTER_CONFIG = "adapter_config.json"
_PREFIXES = ("base_model.model.", "base_model.", "model.", "transformer.")
_ENTRY = re.compile(r"(?P<path>.+)\.lora_(?P<half>[AaBb])(\.\w+)?\.weight")
# options of adapters whose effect is not that of a second path alone
_OTHERS = ("use_dora", "rank_pattern", "alpha_pattern", "lora_bias")


class LoraLinear(nn.Module):
    """A linear layer with an adapter; its own weight is named as without one."""

    def __init__(self, layer: nn.Linear, down: Tensor, up: Tensor, factor: float) -> None:
        super().__init__()
        self.weight, self.bias, self.factor = layer.weight, layer.bias, factor
        self.lora_a = _linear(down.to(layer.weight.dtype))
        self.lora_b = _linear(up.to(layer.weight.dtype))

    @override
    def forward(self, x: Tensor) -> Tensor:
        linear: Any = nn.functional.linear
        return linear(x, self.weight, self.bias) + self.lora_b(self.lora_a(x)) * self.factor


def _linear(weight: Tensor) -> nn.Linear:
    wide, narrow = weight.shape
    layer = nn.Linear(narrow, wide, bias=False, device="meta", dtype=weight.dtype)
    layer.weight = nn.Parameter(weight.clone())
    return layer


def is_adapter(name: str) -> bool:
    """Return whether a weight is of an adapter, by its name in a module or a graph."""
    return re.search(r"lora_[ab](?![a-z])", name) is not None


@dataclass(frozen=True)
class Adapter:
    """An adapter that was read.

    Attributes:
        halves: by path of a layer, the weights of the way down and up
        factor: of what comes up
        targets: layers by name that must have one
    """

    halves: Mapping[str, tuple[Tensor, Tensor]]
    factor: float
    targets: tuple[str, ...]


def read_adapter(config: LoraConfig) -> Adapter:
    """Return the adapter of a configuration.

    Raises: LlmConfigError, CheckpointError, OSError
    """
    place = Path(config.adapter_checkpoint)
    if not place.exists():
        raise LlmConfigError(f"base.lora_config.adapter_checkpoint: {place}: file not found")
    options = _options(config, place)
    halves = _halves(read_checkpoint(place))
    if not halves:
        raise CheckpointError(f"{place}: no weights of an adapter, as q_proj.lora_A.weight")
    rank = int(_number(options, "r", place) or config.lora_rank or _rank(place, halves))
    for path, (down, up) in halves.items():
        if down.dim() != 2 or up.dim() != 2 or not rank == down.shape[0] == up.shape[1]:
            shapes = f"{list(down.shape)} and {list(up.shape)}"
            raise CheckpointError(f"{place}: {path} has {shapes}, not of rank {rank}")
    alpha = _number(options, "lora_alpha", place) or config.lora_alpha or rank
    below = math.sqrt(rank) if options.get("use_rslora") else rank
    given: Any = options.get("target_modules") or config.target_modules
    named = cast("list[str]", given) if isinstance(given, list | tuple) else []
    return Adapter(halves, float(alpha) / below, tuple(named))


def _number(options: Mapping[str, Any], name: str, place: Path) -> float:
    """Return an option of an adapter, 0 without it.

    Raises: LlmConfigError if it is not a positive number
    """
    found = options.get(name) or 0
    if isinstance(found, bool) or not isinstance(found, int | float) or not 0 <= found < math.inf:
        raise LlmConfigError(f"{place}: {name}: expected a positive number, found {found!r:.40}")
    return found


def _rank(place: Path, halves: Mapping[str, tuple[Tensor, Tensor]]) -> int:
    """Return the rank of all layers, where no option has it.

    Raises: CheckpointError for several, each of which has a factor of its own
    """
    ranks = {down.shape[0] if down.dim() == 2 else 0 for down, _ in halves.values()}
    if len(ranks) != 1 or ranks == {0}:
        raise CheckpointError(f"{place}: layers of the ranks {sorted(ranks)}: not supported")
    return ranks.pop()


def _options(config: LoraConfig, place: Path) -> Mapping[str, Any]:
    """Return the content of ``adapter_config.json``, empty without one."""
    folder = place if place.is_dir() else place.parent
    path = Path(config.adapter_config) if config.adapter_config else folder / ADAPTER_CONFIG
    if not path.is_file():
        if config.adapter_config:
            raise LlmConfigError(f"base.lora_config.adapter_config: {path}: file not found")
        return {}
    try:
        found: Any = json.loads(path.read_text("utf-8"))
    except ValueError as error:
        raise LlmConfigError(f"{path}: not JSON: {error}") from error
    if not isinstance(found, dict):
        raise LlmConfigError(f"{path}: expected an object")
    options = cast("dict[str, Any]", found)
    for name in _OTHERS:
        if options.get(name):
            raise LlmConfigError(f"{path}: {name}: not supported")
    if options.get("bias", "none") != "none":
        raise LlmConfigError(f"{path}: bias: not supported")
    return options


def _halves(weights: Mapping[str, Tensor]) -> dict[str, tuple[Tensor, Tensor]]:
    found: dict[str, dict[str, Tensor]] = {}
    for name, tensor in weights.items():
        match = _ENTRY.fullmatch(name)
        if match is None:
            raise CheckpointError(f"{name} of the adapter is not the weight of a lora_A or lora_B")
        halves, half = found.setdefault(match["path"], {}), match["half"].lower()
        if half in halves:
            raise CheckpointError(f"the adapter has {match['path']}.lora_{half.upper()} twice")
        halves[half] = tensor
    for path, both in found.items():
        if len(both) < 2:
            missing = "B" if "a" in both else "A"
            raise CheckpointError(f"the adapter has no {path}.lora_{missing}.weight")
    return {path: (both["a"], both["b"]) for path, both in found.items()}


def add_adapter(module: nn.Module, adapter: Adapter) -> None:
    """Replace the linear layers of a module that an adapter names.

    Raises: CheckpointError for layers that do not exist, or have other sizes
    """
    untyped: Any = module
    layers: dict[str, nn.Linear] = {
        name: one for name, one in untyped.named_modules() if isinstance(one, nn.Linear)
    }
    missing = list(adapter.targets)
    changed = set[str]()
    for given, (down, up) in adapter.halves.items():
        path = _path_in(layers, given)
        if path in changed:
            raise CheckpointError(f"the adapter has {path} twice, once as {given}")
        changed.add(path)
        layer = layers[path]
        wanted = [layer.in_features, layer.out_features]
        if [down.shape[1], up.shape[0]] != wanted:
            words = f"{down.shape[1]} inputs and {up.shape[0]} outputs"
            raise CheckpointError(f"{path} of the adapter has {words}, the layer {wanted}")
        module.set_submodule(path, LoraLinear(layer, down, up, adapter.factor))
        missing = [one for one in missing if not _ends(path, one)]
    if missing:
        raise CheckpointError(f"the adapter has no weights for {', '.join(missing)}")


def _ends(path: str, name: str) -> bool:
    return path == name or path.endswith(f".{name}")


def _path_in(layers: Mapping[str, nn.Linear], given: str) -> str:
    """Return the path of a layer that an adapter may name with a prefix, or without."""
    rests = [given]
    for prefix in _PREFIXES:
        rests += [one.removeprefix(prefix) for one in rests if one.startswith(prefix)]
    for one in rests:
        for path in (one, f"model.{one}"):
            if path in layers:
                return path
    some = ", ".join(list(layers)[:8])
    raise CheckpointError(
        f"the model has no linear layer {given} of the adapter; available: {some}"
    )
