"""A ``model.mlmodel``: the kind of model, and its functions.

Source: coremltools mlmodel/format/Model.proto (field numbers)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from schema.graph import Graph, GraphValue
from schema.payloads.coreml.listing import read_listing
from schema.payloads.coreml.mil import Function, read_program
from schema.payloads.coreml.network import read_features, read_network
from schema.payloads.coreml.wire import FieldBudget, fields, nested, number, text

_VERSION, _DESCRIPTION, _DEFAULT_FUNCTION, _ML_PROGRAM = 1, 2, 21, 502  # fields of Model.proto
_NETWORKS = {
    303: "neural network regressor",
    403: "neural network classifier",
    500: "neural network",
}
# models without a graph; every other field from the first of them on is a model too
_FIRST_MODEL = 200
_OTHERS = {
    200: "pipeline classifier",
    201: "pipeline regressor",
    202: "pipeline",
    302: "tree ensemble regressor",
    402: "tree ensemble classifier",
    404: "nearest neighbours classifier",
    555: "custom model",
    556: "linked model",
    610: "non-maximum suppression",
    900: "identity",
    3000: "serialized model",
}
Weight = tuple[str, int] | memoryview  # a place in a weight file, or the bytes
Features = tuple[list[GraphValue], ...]


@dataclass(slots=True)
class CoreMLProgram:
    """The decoded ``model.mlmodel``.

    Attributes:
        specification: version of the Core ML specification
        kind: ``ML program``, or another kind of model
        default: name of the function that runs by default
        functions: graph by function name; nested blocks are subgraphs
        weights: by function, by the name of the constant
        opsets: opset by function name
    """

    specification: int = 0
    kind: str = "unknown"
    default: str = ""
    functions: dict[str, Graph] = field(default_factory=dict[str, Graph])
    weights: dict[str, Mapping[str, Weight]] = field(
        default_factory=dict[str, Mapping[str, Weight]]
    )
    opsets: dict[str, str] = field(default_factory=dict[str, str])

    def choose(self, name: str) -> str:
        """Return the function of a name, else the default one, ``main``, or the first."""
        for requested in (name, self.default, "main"):
            if requested and requested in self.functions:
                return requested
        return next(iter(self.functions), "")


def read_model(data: memoryview) -> CoreMLProgram:
    """Return the program of a ``model.mlmodel``.

    Raises: FormatError if the protobuf is damaged
    """
    budget = FieldBudget()
    program = CoreMLProgram()
    features: Features = ([], [])
    models: dict[int, list[memoryview]] = {}
    for number_, value in fields(data, budget):
        if number_ == _VERSION:
            program.specification = number(value)
        elif number_ == _DESCRIPTION:
            features = read_features(nested(value), budget)
            program.default = _default(nested(value), budget)
        elif number_ >= _FIRST_MODEL:
            models.setdefault(number_, []).append(nested(value))
    for kind, pieces in models.items():
        # Repeated occurrences of a message are merged.
        whole = pieces[0] if len(pieces) == 1 else memoryview(b"".join(pieces))
        _read(program, kind, whole, features, budget)
    return program


def _default(description: memoryview, budget: FieldBudget) -> str:
    found = [text(value) for key, value in fields(description, budget) if key == _DEFAULT_FUNCTION]
    return found[-1] if found else ""


def _read(
    program: CoreMLProgram, kind: int, message: memoryview, features: Features, budget: FieldBudget
) -> None:
    if kind == _ML_PROGRAM:
        program.kind = "ML program"
        _keep(program, read_program(message, budget))
    elif kind in _NETWORKS:
        program.kind = _NETWORKS[kind]
        network = read_network(message, features, budget)
        program.functions[network.graph.name] = network.graph
        program.weights[network.graph.name] = dict(network.weights)
    else:
        program.kind = _OTHERS.get(kind, f"model of type {kind}")


def read_text(data: memoryview) -> CoreMLProgram:
    """Return the program of a compiled model, stored as text.

    Raises: FormatError for any other text
    """
    program = CoreMLProgram(kind="compiled ML program")
    _keep(program, read_listing(data))
    return program


def _keep(program: CoreMLProgram, functions: Mapping[str, Function]) -> None:
    for name, function in functions.items():
        program.functions[name] = function.graph
        program.weights[name] = dict(function.weights)
        program.opsets[name] = function.opset
