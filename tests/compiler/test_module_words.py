"""Words of quantization for containers, modules that are never called, and several methods."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch
from torch import nn
from torch.export import ExportedProgram

from compiler.quantize.patterns import opened_containers, words_by_method
from compiler.quantize.program import (
    QuantizationModes,
    QuantizeError,
    modes_by_method,
    quantize_program,
)
from compiler.quantize.weights import (
    WeightModes,
    layer_words,
    quantize_weights,
    weight_modes_by_method,
)

WIDTH = 32
CALLED = ("c.0", "c.0.fc", "c.1", "d.a.b", "d.a.b.fc", "e")


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({"c": "x"}, {"c.0": "x", "c.1": "x"}),
        ({"c": "x", "c.1": "y"}, {"c.0": "x", "c.1": "y"}),
        ({"c": "x", "c.0.fc": "y"}, {"c.0": "x", "c.0.fc": "y", "c.1": "x"}),
        ({"d": "x", "d.a": "y"}, {"d.a.b": "y"}),
        ({"d.a": "y", "d": "x"}, {"d.a.b": "y"}),
        ({"e": "x", "f": "y"}, {"e": "x", "f": "y"}),
        ({"c.0": "x"}, {"c.0": "x"}),
    ],
)
def test_a_word_for_a_container_is_for_the_outermost_modules_in_it(
    given: dict[str, str], wanted: dict[str, str]
) -> None:
    assert opened_containers(given, CALLED) == wanted


def test_each_method_has_the_words_of_its_modules_and_what_no_method_has() -> None:
    known = {"one": ["a", "a.b", "c.0"], "two": ["a", "d.x", "d.y"]}
    given = {"a": "1", "d.*": "2", "c.0": "3", "e": "4", "f.*": "5"}
    rest = {"a": "1", "e": "4", "f.*": "5"}
    assert words_by_method(given, known) == {
        "one": {**rest, "c.0": "3"},
        "two": {**rest, "d.x": "2", "d.y": "2"},
    }


class Layers(nn.Module):
    """Layers in a container, or whose weights alone are read."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind
        layers = [nn.Linear(WIDTH, WIDTH) for _ in range(2)]
        weights = [nn.Parameter(torch.randn(WIDTH, WIDTH)) for _ in range(2)]
        self.c: Any = {
            "list": lambda: nn.ModuleList(layers),
            "dict": lambda: nn.ModuleDict(dict(zip("ab", layers, strict=True))),
            "nested": lambda: nn.ModuleDict({"a": nn.ModuleList(layers)}),
            "read": lambda: nn.ModuleList(layers),
            "parameters": lambda: nn.ParameterList(weights),
        }[kind]()
        self.last = nn.Linear(WIDTH, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return four numbers of each row."""
        inside = {"dict": lambda: self.c.values(), "nested": lambda: self.c["a"]}
        for one in inside.get(self.kind, lambda: self.c)():
            if self.kind == "read":
                x = nn.functional.linear(x, one.weight, one.bias)
            else:
                x = torch.mm(x, one) if self.kind == "parameters" else one(x)
            x = x.relu()
        return self.last(x)


def exported(module: nn.Module) -> ExportedProgram:
    return torch.export.export(module.eval(), (torch.randn(3, WIDTH),))


def quantized_layers(program: ExportedProgram, how: QuantizationModes | WeightModes) -> int:
    """Return how many linear layers have quantized weights."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torchao's, about itself
        if isinstance(how, WeightModes):
            program = quantize_weights(program, how)
        else:
            program = quantize_program(program, how)
    layers = [n for n in program.graph.nodes if n.target is torch.ops.aten.linear.default]
    return sum("dequantize" in str(node.args[1].target) for node in layers)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["list", "dict", "nested"])
@pytest.mark.parametrize("mode", ["static", "dynamic", "weight-only", "8da4w", "int8"])
def test_layers_in_a_container_take_its_word(kind: str, mode: str) -> None:
    make: Any = WeightModes if mode in ("8da4w", "int8") else QuantizationModes

    def count(modules: dict[str, str]) -> int:
        return quantized_layers(exported(Layers(kind)), make(mode, modules=modules))

    first = {"list": "c.0", "dict": "c.a", "nested": "c.a.0"}[kind]
    assert count({}) == 3
    assert count({"c": "none"}) == 1
    assert count({"c": "none", first: mode}) == 2
    assert count({"*": "none"}) == 0


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "path"), [("read", "c"), ("read", "c.1"), ("parameters", "c")])
def test_a_module_that_is_never_called_is_refused_by_name(kind: str, path: str) -> None:
    how = QuantizationModes("static", modules={path: "none"})
    with pytest.raises(QuantizeError, match=rf"modules\.{path}: the module is never called"):
        quantize_program(exported(Layers(kind)), how)
    how = QuantizationModes("static", modules={"nowhere": "none"})
    with pytest.raises(QuantizeError, match=r"modules\.nowhere: unknown module"):
        quantize_program(exported(Layers(kind)), how)


class Methods(nn.Module):
    """A common layer, and others that one of two methods uses."""

    def __init__(self) -> None:
        super().__init__()
        self.common, self.first = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)
        self.layers = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return as many numbers as it takes."""
        return self.first(self.common(x))

    def other(self, x: torch.Tensor) -> torch.Tensor:
        """Return as many numbers as it takes."""
        for layer in self.layers:
            x = layer(x)
        return self.common(x)


class Call(nn.Module):
    def __init__(self, net: Methods, method: str) -> None:
        super().__init__()
        self.net, self.method = net, method

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Call the method."""
        return getattr(self.net, self.method)(x)


@pytest.mark.parametrize(
    ("linear", "embedding", "modules", "wanted"),
    [
        ("int8", "4", {}, {"a.fc": "int8", "b": "int8", "a.table": "4", "t": "4"}),
        ("none", "4", {"t": "none"}, {"a.table": "4"}),
        ("none", "4", {"a": "none"}, {"t": "4"}),
        ("int8", "4", {"a": "none"}, {"b": "int8", "t": "4"}),
        ("none", "4", {"a": "int8"}, {"a.fc": "int8", "a.table": "4", "t": "4"}),
        ("none", "", {"a": "8:group=32"}, {"a.table": "8:group=32"}),
        ("int8", "", {"a.table": "2"}, {"a.fc": "int8", "b": "int8", "a.table": "2"}),
        ("int8", "4", {"*": "none", "a.table": "8"}, {"a.table": "8"}),
    ],
)
def test_tables_of_embeddings_have_words_of_their_own(
    linear: str, embedding: str, modules: dict[str, str], wanted: dict[str, str]
) -> None:
    how = WeightModes(linear, embedding, modules)
    assert layer_words(how, ["a.fc", "b"], {"a.table", "t"}) == wanted


@pytest.mark.parametrize(
    ("linear", "modules", "message"),
    [
        ("int8", {"b": "4"}, "b: no table of embeddings in this module; available: t$"),
        ("int8", {"t": "8da4w"}, "t: no linear layer in this module; available: a.fc, b$"),
        ("4", {}, "unknown word '4'"),
        ("none", {"t": "5"}, "unknown word '5'"),
    ],
)
def test_a_word_for_layers_of_the_other_kind_is_refused(
    linear: str, modules: dict[str, str], message: str
) -> None:
    with pytest.raises(QuantizeError, match=message):
        layer_words(WeightModes(linear, "", modules), ["a.fc", "b"], {"t"})


def methods() -> dict[str, ExportedProgram]:
    net = Methods()
    return {name: exported(Call(net, name)) for name in ("forward", "other")}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("modules", "wanted"),
    [
        ({}, (2, 3)),
        ({"net.first": "none"}, (1, 3)),
        ({"net.layers": "none"}, (2, 1)),
        ({"net.layers.1": "none"}, (2, 2)),
        ({"net.lay*.*": "none", "net.common": "none"}, (1, 0)),
    ],
)
@pytest.mark.parametrize("word", ["8da4w", "int8", "4w", "static"])
def test_a_module_of_one_of_several_methods_has_its_word(
    word: str, modules: dict[str, str], wanted: tuple[int, int]
) -> None:
    programs = methods()
    if word == "static":
        hows: Any = modes_by_method(programs, QuantizationModes(word, modules=modules))
    else:
        hows = weight_modes_by_method(programs, WeightModes(word, modules=modules))
    found = tuple(quantized_layers(program, hows[name]) for name, program in programs.items())
    assert found == wanted


@pytest.mark.slow
def test_a_module_of_no_method_is_refused() -> None:
    programs = methods()
    by_method = weight_modes_by_method(programs, WeightModes("int8", modules={"net.no": "none"}))
    with pytest.raises(QuantizeError, match=r"modules\.net\.no: no linear layer in this module"):
        quantize_weights(programs["forward"], by_method["forward"])
    hows = modes_by_method(programs, QuantizationModes("static", modules={"net.no": "none"}))
    with pytest.raises(QuantizeError, match=r"modules\.net\.no: unknown module"):
        quantize_program(programs["other"], hows["other"])
