"""Quantization of the weights of layers by torchao, in an exported program."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import nn
from torch.export import ExportedProgram
from torch.utils import _pytree

from compiler.quantize.patterns import expand_modules, with_owners, words_by_method
from compiler.quantize.program import (
    NONE,
    OVERRIDDEN_MODULES,
    QuantizeError,
    export_again,
    import_torchao,
)
from compiler.quantize.weight_words import (
    group_of,
    is_table_word,
    is_weight_word,
    unknown_weight_word,
)

pytree: Any = _pytree
_ADAPTER = re.compile(r"\.lora_[ab]$")
_LAYERS = ("Linear", "Embedding")


@dataclass(frozen=True)
class WeightModes:
    """How the weights of layers are quantized.

    Attributes:
        linear: of linear layers: ``8da4w``, ``8da8w``, ``4w`` or ``int8``, with ``:group=N`` for
            scales by group; ``none`` for those that ``modules`` names only; those of adapters
            (``lora_a``, ``lora_b``) stay as they are unless ``modules`` names them
        embedding: bits of the tables of embeddings, with ``:group=N``; empty for none
        modules: by path of a module, with ``*`` for any one name, another word for the linear
            layers or the tables in it, or ``none`` for both
    """

    linear: str = NONE
    embedding: str = ""
    modules: Mapping[str, str] = field(default_factory=dict[str, str])


class FloatLayersWarning(UserWarning):
    """Layers stay floats although a word is for them."""


class GroupError(QuantizeError):
    """Groups that do not divide the inputs of a layer.

    Attributes:
        word: that demands them
    """

    def __init__(self, message: str, word: str) -> None:
        super().__init__(message)
        self.word = word


def quantize_weights(program: ExportedProgram, how: WeightModes) -> ExportedProgram:
    """Return a program whose layers have quantized weights; the given one is not changed.

    Args:
        program: as returned by ``torch.export.export``
        how: by kind of layer and module

    Raises:
        ModuleNotFoundError: torchao is not installed
        QuantizeError: a word or module is unknown, a group does not divide the size of a layer
            (a GroupError), or shapes cannot be preserved

    Warns: of linear layers in branches and loops, which stay as they are
    """
    given = program.example_inputs
    if given is None:
        raise QuantizeError("the program has no example inputs to export it with again")
    graph: Any = program.module()
    linears, tables = _layers_of(graph)
    inside = sorted(set(_branch_layers(graph, {})) - set(linears))
    words = layer_words(how, [*linears, *inside], tables)
    kept = [path for path in inside if words.pop(path, None)]
    if kept:
        layers = "a linear layer" if len(kept) == 1 else f"{len(kept)} linear layers"
        warnings.warn(
            f"the weights of {layers} in branches or loops stay floats: {', '.join(kept)}",
            FloatLayersWarning,
            stacklevel=2,
        )
    quantize: Any = import_torchao("torchao.quantization").quantize_
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of torchao, about itself
        for word in sorted(set(words.values())):
            mine = {path for path, own in words.items() if own == word}
            table = is_table_word(word)
            for path in sorted(mine):
                layer = graph.get_submodule(path)
                _check_group(path, word, layer.embedding_dim if table else layer.in_features)
            quantize(graph, _table_config(word) if table else _config(word), _among(mine))
        return export_again(program, graph, given[0])


def weight_modes_by_method(
    programs: Mapping[str, ExportedProgram], how: WeightModes
) -> dict[str, WeightModes]:
    """Return the modes of each method: without those for layers that only other methods have."""
    if not how.modules or len(programs) == 1:
        return dict.fromkeys(programs, how)
    layers = {method: _layers_of(program.module()) for method, program in programs.items()}
    known = {
        method: with_owners([*linears, *tables]) for method, (linears, tables) in layers.items()
    }
    modules = words_by_method(how.modules, known)
    return {method: replace(how, modules=modules[method]) for method in programs}


def _among(paths: Collection[str]) -> Callable[[nn.Module, str], bool]:
    """Return a filter of layers by path."""

    def chosen(_layer: nn.Module, path: str) -> bool:
        return path in paths

    return chosen


def _layers_of(graph: Any) -> tuple[list[str], set[str]]:  # noqa: ANN401 - a graph module
    """Turn linear layers and embeddings of a graph into modules; return their paths."""
    linears: list[str] = []
    tables: set[str] = set()
    taken: set[str] = set()
    # Layers come behind all weights are read: one may lie inside of another, as an adapter does.
    for node, layer, embedding in _layer_calls(graph):
        weight, reads = node.args[:2] if embedding else reversed(node.args[:2])
        bias = None if embedding or len(node.args) < 3 else node.args[2]
        path = _free_path(_layer_path(graph, node, str(weight.target)), taken)
        graph.set_submodule(path, layer)
        taken.add(path)
        (tables.add if embedding else linears.append)(path)
        with graph.graph.inserting_before(node):
            call = graph.graph.call_module(path, (reads,))
            if bias is not None and "bias" not in layer.state_dict():  # computed, or spread
                call.meta.update(node.meta)
                call = graph.graph.call_function(torch.ops.aten.add.Tensor, (call, bias))
        call.meta.update(node.meta)
        node.replace_all_uses_with(call)
        graph.graph.erase_node(node)
    for node in reversed(list(graph.graph.nodes)):
        if node.op == "get_attr" and not node.users:
            graph.graph.erase_node(node)
    graph.recompile()
    return linears, tables


def _layer_calls(graph: Any) -> list[tuple[Any, nn.Module, bool]]:  # noqa: ANN401
    """Return calls of linear layers and embeddings, with a module, and whether it is the latter."""
    found: list[tuple[Any, nn.Module, bool]] = []
    for node in list(graph.graph.nodes):
        linear = node.target is torch.ops.aten.linear.default
        embedding = node.target is torch.ops.aten.embedding.default
        if not (linear or embedding) or node.op != "call_function":
            continue
        weight = node.args[0 if embedding else 1]
        if weight.op != "get_attr":
            continue
        matrix = _attribute(graph, weight.target)
        if matrix.dim() != 2:  # a layer with one output may read a vector
            continue
        if embedding:
            layer: nn.Module = nn.Embedding(
                matrix.shape[0], matrix.shape[1], _weight=matrix.detach()
            )
        else:
            bias = node.args[2] if len(node.args) > 2 else None
            held = None if bias is None or bias.op != "get_attr" else _attribute(graph, bias.target)
            spread = held is not None and held.shape != matrix.shape[:1]
            layer = _linear(matrix, None if spread else held)
        found.append((node, layer, embedding))
    return found


def _branch_layers(graph: Any, weights: Mapping[Any, str]) -> Iterator[str]:  # noqa: ANN401
    """Yield the paths of linear layers in branches and loops, whose weights come from outside.

    Args:
        graph: a graph module
        weights: path of a weight by the node that stands for it
    """
    named = dict(weights)
    for node in graph.graph.nodes:
        if node.op == "get_attr":
            named[node] = str(node.target)
        given = pytree.arg_tree_leaves(*node.args)
        parts = [at for at, one in enumerate(given) if _part(graph, one) is not None]
        for at in parts:
            part = _part(graph, given[at])
            inputs = [one for one in part.graph.nodes if one.op == "placeholder"]
            behind = given[parts[-1] + 1 :]
            mine = {
                own: named[one]
                for own, one in zip(inputs, behind, strict=False)
                if isinstance(one, torch.fx.Node) and one in named
            }
            for inner in part.graph.nodes:
                if inner.target is torch.ops.aten.linear.default and inner.args[1] in mine:
                    yield mine[inner.args[1]].rpartition(".")[0]
            yield from _branch_layers(part, mine)


def _part(graph: Any, value: object) -> Any:  # noqa: ANN401
    """Return the graph of a branch that a value of a graph stands for, None for other values."""
    if not isinstance(value, torch.fx.Node) or value.op != "get_attr":
        return None
    found = getattr(graph, str(value.target), None)
    return found if isinstance(found, torch.fx.GraphModule) else None


def _attribute(graph: Any, path: str) -> torch.Tensor:  # noqa: ANN401
    owner, _, name = path.rpartition(".")
    return getattr(graph.get_submodule(owner), name)


def _linear(weight: torch.Tensor, bias: torch.Tensor | None) -> nn.Linear:
    wide, narrow = weight.shape
    layer = nn.Linear(narrow, wide, bias=bias is not None, device="meta", dtype=weight.dtype)
    layer.weight = nn.Parameter(weight.detach(), requires_grad=False)
    if bias is not None:
        layer.bias = nn.Parameter(bias.detach(), requires_grad=False)
    return layer


def _layer_path(graph: Any, node: Any, weight: str) -> str:  # noqa: ANN401
    """Return the path of the layer that a call belongs to.

    It is the module that made the call if that is a layer, which a tied weight has the name of
    another one of; otherwise the module that has the weight.
    """
    stack: Mapping[str, Any] = node.meta.get("nn_module_stack") or {}
    innermost: tuple[str, Any] = [("", ""), *stack.values()][-1]
    path = innermost[0].partition("@")[0]  # a number follows where a module is called again
    name = str(getattr(innermost[1], "__name__", innermost[1]))
    is_layer = bool(path) and name.rpartition(".")[2] in _LAYERS
    if is_layer and _has_module(graph, path.rpartition(".")[0]):
        return path
    return weight.rpartition(".")[0] or f"{weight}_layer"


def _has_module(graph: Any, path: str) -> bool:  # noqa: ANN401
    try:
        graph.get_submodule(path)
    except AttributeError:
        return False
    return True


def _free_path(owner: str, taken: set[str]) -> str:
    """Return the path of a layer, with a number where another call has it already."""
    return next(
        path
        for at in range(len(taken) + 1)
        if (path := f"{owner}_{at}" if at else owner) not in taken
    )


def layer_words(
    how: WeightModes, linears: Collection[str], tables: Collection[str] = ()
) -> dict[str, str]:
    """Return the word of each linear layer and table that is quantized, by path.

    Raises: QuantizeError for an unknown word, or a module without a layer for its word
    """
    of_modules = [word for word in how.modules.values() if not is_table_word(word)]
    for word in (how.linear, *of_modules):
        if word != NONE and not is_weight_word(word):
            raise QuantizeError(unknown_weight_word(word))
    if how.embedding and not is_table_word(how.embedding):
        raise QuantizeError(f"unknown word {how.embedding!r}; expected 2, 4 or 8[:group=N]")
    found: dict[str, str] = {}
    used: set[str] = set()
    modules = expand_modules(how.modules, with_owners([*linears, *tables]))
    for path in (*linears, *sorted(tables)):
        table = path in tables
        inside = [
            one
            for one, word in modules.items()
            if (path == one or path.startswith(f"{one}."))
            and (word == NONE or is_table_word(word) is table)
        ]
        used.update(inside)
        plain = how.embedding or NONE if table else NONE if _ADAPTER.search(path) else how.linear
        word = modules[max(inside, key=len)] if inside else plain
        if word != NONE:
            found[path] = word
    unknown = [path for path in modules if path not in used]
    if unknown:
        table = is_table_word(modules[unknown[0]])
        known = sorted(tables) if table else list(linears)
        some = ", ".join(known[:8]) + (" and more" if len(known) > 8 else "")
        kind = "table of embeddings" if table else "linear layer"
        words = f"no {kind} in this module; available: {some or 'none'}"
        raise QuantizeError(f"{OVERRIDDEN_MODULES}.{unknown[0]}: {words}")
    return found


def _check_group(path: str, word: str, size: int) -> None:
    group = group_of(word)
    if group is not None and size % group:
        words = f"{path} has {size} inputs, which groups of {group} do not divide; choose another"
        words += " group" if is_table_word(word) else f" group or leave it as it is ({path}=none)"
        raise GroupError(words, word)


def _granularity(word: str) -> Any:  # noqa: ANN401 - of torchao
    kinds: Any = import_torchao("torchao.quantization.granularity")
    group = group_of(word)
    return kinds.PerAxis(0) if group is None else kinds.PerGroup(group)


def _config(word: str) -> Any:  # noqa: ANN401 - of torchao
    configs: Any = import_torchao("torchao.quantization")
    dtype: Any = getattr(torch, "int8" if word.startswith(("int8", "8da8w")) else "int4")
    by = _granularity(word)
    if word.startswith("8da"):
        return configs.Int8DynamicActivationIntxWeightConfig(
            weight_dtype=dtype, weight_granularity=by
        )
    return configs.IntxWeightOnlyConfig(weight_dtype=dtype, granularity=by)


def _table_config(word: str) -> Any:  # noqa: ANN401 - of torchao
    configs: Any = import_torchao("torchao.quantization")
    dtype = getattr(torch, f"int{word.partition(':')[0]}")
    return configs.IntxWeightOnlyConfig(weight_dtype=dtype, granularity=_granularity(word))
