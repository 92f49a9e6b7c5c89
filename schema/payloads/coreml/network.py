"""A neural network of the older Core ML specifications as a graph: layers with their weights.

Source: coremltools mlmodel/format/NeuralNetwork.proto, FeatureTypes.proto (field numbers)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from schema.errors import FormatError
from schema.graph import Argument, Dim, Graph, GraphNode, GraphValue, NodeKind, TensorMeta
from schema.payloads.coreml.wire import FieldBudget, fields, nested, number, packed, text
from schema.payloads.names import unique

_LAYERS = 1
_MULTI_ARRAY = 5  # of the feature types the one that is a tensor
_MAX_DEPTH = 32
_MAX_LAYERS = 100_000  # a hostile model must not fill the memory
_BRANCH, _LOOP = 605, 615  # fields of NeuralNetwork.proto
# layer -> fields that hold a network
_NESTED = {
    _BRANCH: {1: "then", 2: "else"},
    _LOOP: {3: "condition", 4: "body"},
}
_KINDS = (
    "100 convolution 120 pooling 130 activation 140 innerProduct 150 embedding 160 batchnorm "
    "165 mvn 170 l2normalize 175 softmax 180 lrn 190 crop 200 padding 210 upsample "
    "211 resizeBilinear 212 cropResize 220 unary 230 add 231 multiply 240 average 245 scale "
    "250 bias 260 max 261 min 270 dot 280 reduce 290 loadConstant 300 reshape 301 flatten "
    "310 permute 320 concat 330 split 340 sequenceRepeat 345 reorganizeData 350 slice "
    "400 simpleRecurrent 410 gru 420 uniDirectionalLSTM 430 biDirectionalLSTM 500 custom 600 copy "
    "605 branch 615 loop 620 loopBreak 625 loopContinue 635 rangeStatic 640 rangeDynamic 660 clip "
    "665 ceil 670 floor 680 sign 685 round 700 exp2 710 sin 715 cos 720 tan 730 asin 735 acos "
    "740 atan 750 sinh 755 cosh 760 tanh 770 asinh 775 acosh 780 atanh 790 erf 795 gelu 815 equal "
    "820 notEqual 825 lessThan 827 lessEqual 830 greaterThan 832 greaterEqual 840 logicalOr "
    "845 logicalXor 850 logicalNot 855 logicalAnd 865 modBroadcastable 870 minBroadcastable "
    "875 maxBroadcastable 880 addBroadcastable 885 powBroadcastable 890 divideBroadcastable "
    "895 floorDivBroadcastable 900 multiplyBroadcastable 905 subtractBroadcastable 920 tile "
    "925 stack 930 gather 935 scatter 940 gatherND 945 scatterND 950 softmaxND "
    "952 gatherAlongAxis 954 scatterAlongAxis 960 reverse 965 reverseSeq 975 splitND 980 concatND "
    "985 transpose 995 sliceStatic 1000 sliceDynamic 1005 slidingWindows 1015 topK 1020 argMin "
    "1025 argMax 1040 embeddingND 1045 batchedMatmul 1065 getShape 1070 loadConstantND "
    "1080 fillLike 1085 fillStatic 1090 fillDynamic 1100 broadcastToLike 1105 broadcastToStatic "
    "1110 broadcastToDynamic 1120 squeeze 1125 expandDims 1130 flattenTo2D 1135 reshapeLike "
    "1140 reshapeStatic 1145 reshapeDynamic 1150 rankPreservingReshape 1155 constantPad "
    "1170 randomNormalLike 1175 randomNormalStatic 1180 randomNormalDynamic 1190 randomUniformLike "
    "1195 randomUniformStatic 1200 randomUniformDynamic 1210 randomBernoulliLike "
    "1215 randomBernoulliStatic 1220 randomBernoulliDynamic 1230 categoricalDistribution "
    "1250 reduceL1 1255 reduceL2 1260 reduceMax 1265 reduceMin 1270 reduceSum 1275 reduceProd "
    "1280 reduceMean 1285 reduceLogSum 1290 reduceSumSquare 1295 reduceLogSumExp 1313 whereNonZero "
    "1315 matrixBandPart 1320 lowerTriangular 1325 upperTriangular 1330 whereBroadcastable "
    "1350 layerNormalization 1400 NonMaximumSuppression 1450 oneHot 1455 cumSum 1460 clampedReLU "
    "1461 argSort 1465 pooling3d 1466 globalPooling3d 1470 sliceBySize 1471 convolution3d"
)
_ACTIVATIONS = (
    "5 linear 10 ReLU 15 leakyReLU 20 thresholdedReLU 25 PReLU 30 tanh 31 scaledTanh 40 sigmoid "
    "41 sigmoidHard 50 ELU 60 softsign 70 softplus 71 parametricSoftplus"
)
# layer -> its fields with weights
_WEIGHTS = {
    100: "90 weights 91 bias",
    140: "20 weights 21 bias",
    150: "20 weights 21 bias",
    160: "15 gamma 16 beta 17 mean 18 variance",
    245: "2 scale 5 bias",
    250: "2 bias",
    290: "2 data",
    400: "30 weightMatrix 31 recursionMatrix 32 biasVector",
    410: "30 updateGateWeightMatrix 31 resetGateWeightMatrix 32 outputGateWeightMatrix "
    "50 updateGateRecursionMatrix 51 resetGateRecursionMatrix 52 outputGateRecursionMatrix "
    "70 updateGateBiasVector 71 resetGateBiasVector 72 outputGateBiasVector",
    420: "20 weightParams",
    430: "20 weightParams",
    500: "20 weights",
    1040: "20 weights 21 bias",
    1045: "8 weights 9 bias",
    1070: "2 data",
    1350: "3 gamma 4 beta",
    1471: "60 weights 61 bias",
}
_GATES = (  # of the weights of an LSTM
    "1 inputGateWeightMatrix 2 forgetGateWeightMatrix 3 blockInputWeightMatrix "
    "4 outputGateWeightMatrix 20 inputGateRecursionMatrix 21 forgetGateRecursionMatrix "
    "22 blockInputRecursionMatrix 23 outputGateRecursionMatrix 40 inputGateBiasVector "
    "41 forgetGateBiasVector 42 blockInputBiasVector 43 outputGateBiasVector "
    "60 inputGatePeepholeVector 61 forgetGatePeepholeVector 62 outputGatePeepholeVector"
)
# storage of the values of a weight: field -> name, scalar type, bytes an element
_STORED = {1: ("float32", 6, 4), 2: ("float16", 5, 2), 30: ("packed", -1, 0), 31: ("int8", 1, 1)}
_ARRAY_TYPES = {65568: 6, 65600: 7, 131104: 3, 131080: 1, 65552: 5}


@dataclass(slots=True)
class Network:
    """A network that was read.

    Attributes:
        graph: layers as nodes
        weights: bytes by constant name
    """

    graph: Graph
    weights: dict[str, memoryview] = field(default_factory=dict[str, memoryview])


def _table(numbered: str) -> Mapping[int, str]:
    words = numbered.split()
    return dict(zip(map(int, words[::2]), words[1::2], strict=True))


KINDS = _table(_KINDS)
ACTIVATIONS = _table(_ACTIVATIONS)
WEIGHTS = {layer: _table(row) for layer, row in _WEIGHTS.items()}
GATES = _table(_GATES)


def read_features(description: memoryview, budget: FieldBudget) -> tuple[list[GraphValue], ...]:
    """Return the inputs and the outputs of a model description.

    Raises: FormatError if the message is damaged
    """
    found: dict[int, list[GraphValue]] = {1: [], 10: []}
    for number_, value in fields(description, budget):
        if number_ in found:
            found[number_].append(_feature(nested(value), budget))
    return found[1], found[10]


def _feature(message: memoryview, budget: FieldBudget) -> GraphValue:
    name, meta = "", None
    for number_, value in fields(message, budget):
        if number_ == 1:
            name = text(value)
        elif number_ == 3:
            for kind, body in fields(nested(value), budget):
                if kind == _MULTI_ARRAY:
                    meta = _array(nested(body), budget)
    return GraphValue(name, meta, "tensor" if meta else "other")


def _array(message: memoryview, budget: FieldBudget) -> TensorMeta:
    sizes: list[Dim] = []
    scalar_type = -1
    for number_, value in fields(message, budget):
        if number_ == 1:
            sizes += [int(size) for size in packed(value, "v")]
        elif number_ == 2:
            scalar_type = _ARRAY_TYPES.get(number(value), -1)
    return TensorMeta(scalar_type, tuple(sizes))


def read_network(
    message: memoryview,
    features: tuple[list[GraphValue], ...],
    budget: FieldBudget,
) -> Network:
    """Return the layers of a network.

    Raises: FormatError if the message is damaged, or has too many layers
    """
    inputs, outputs = features
    reader = _NetworkReader(budget)
    graph = reader.network(message, "neural network", {one.name: one for one in inputs}, 0)
    values = {**graph.values, **{one.name: one for one in outputs}}
    return Network(
        Graph(
            "neural network",
            graph.nodes,
            values,
            tuple(one.name for one in inputs),
            tuple(one.name for one in outputs),
            reader.nested,
        ),
        reader.weights,
    )


class _NetworkReader:
    """Reads the layers of one model; nested networks and weights are collected by name."""

    def __init__(self, budget: FieldBudget) -> None:
        self.nested: dict[str, Graph] = {}
        self.weights: dict[str, memoryview] = {}
        self._budget = budget
        self._names: set[str] = set()
        self._count = 0

    def network(
        self, message: memoryview, name: str, known: Mapping[str, GraphValue], depth: int
    ) -> Graph:
        """Return a network as a graph."""
        if depth > _MAX_DEPTH:
            raise FormatError(f"networks nested at most {_MAX_DEPTH} deep", "deeper nesting")
        values = dict(known)
        nodes: list[GraphNode] = []
        for number_, value in fields(message, self._budget):
            if number_ == _LAYERS:
                nodes.append(self._layer(nested(value), values, depth))
        return Graph(name, tuple(nodes), values)

    def _layer(self, message: memoryview, values: dict[str, GraphValue], depth: int) -> GraphNode:
        name, kind, body = "", 0, memoryview(b"")
        inputs, outputs = list[str](), list[str]()
        shapes: dict[int, list[TensorMeta]] = {4: [], 5: []}
        for number_, value in fields(message, self._budget):
            if number_ == 1:
                name = text(value)
            elif number_ in (2, 3):
                (inputs if number_ == 2 else outputs).append(text(value))
            elif number_ in shapes:
                shapes[number_].append(self._shape(nested(value)))
            elif number_ >= 100:
                kind, body = number_, nested(value)
        index = self._count
        self._count += 1
        if index >= _MAX_LAYERS:
            raise FormatError(f"at most {_MAX_LAYERS} layers", "more", field="neuralNetwork")
        target = KINDS.get(kind, f"layer {kind}")
        name = unique(name or f"{target}_{index}", index, self._names)
        for names, metas in ((inputs, shapes[4]), (outputs, shapes[5])):
            _add(values, names, metas)
        arguments = [Argument(values=(one,)) for one in inputs]
        arguments += self._weights(kind, name, body, values)
        facts = self._facts(kind, body)
        return GraphNode(
            name,
            NodeKind.CONTROL if kind in _NESTED else NodeKind.CALL,
            target,
            tuple(arguments),
            tuple(outputs),
            attributes=MappingProxyType(facts),
            subgraphs=tuple(self._networks(kind, name, body, depth)),
        )

    def _shape(self, message: memoryview) -> TensorMeta:
        sizes: list[Dim] = []
        for number_, value in fields(message, self._budget):
            if number_ == 2:
                sizes += [int(size) if size >= 0 else "?" for size in packed(value, "v")]
        return TensorMeta(-1, tuple(sizes), type_name="unknown")

    def _facts(self, kind: int, body: memoryview) -> dict[str, object]:
        if kind != 130:
            return {}
        found = [number_ for number_, _ in fields(body, self._budget)]
        return {"function": ACTIVATIONS.get(found[0], f"activation {found[0]}")} if found else {}

    def _networks(self, kind: int, name: str, body: memoryview, depth: int) -> Iterator[str]:
        names = _NESTED.get(kind)
        if names is None:
            return
        for number_, value in fields(body, self._budget):
            if number_ in names:
                label = unique(f"{name}/{names[number_]}", number_, self._names)
                self.nested[label] = self.network(nested(value), label, {}, depth + 1)
                yield label

    def _weights(
        self, kind: int, name: str, body: memoryview, values: dict[str, GraphValue]
    ) -> Iterator[Argument]:
        known = WEIGHTS.get(kind, {})
        for number_, value in fields(body, self._budget) if known else ():
            if number_ not in known:
                continue
            key = known[number_]
            if key != "weightParams":
                yield from self._weight(name, key, nested(value), values)
                continue
            for gate, inner in fields(nested(value), self._budget):
                if gate in GATES:
                    yield from self._weight(name, GATES[gate], nested(inner), values)

    def _weight(
        self, name: str, key: str, message: memoryview, values: dict[str, GraphValue]
    ) -> Iterator[Argument]:
        for number_, value in fields(message, self._budget):
            if number_ not in _STORED or isinstance(value, int) or not len(value):
                continue
            type_name, scalar_type, width = _STORED[number_]
            built = unique(f"{name}.{key}", number_, self._names)
            sizes = (len(value) // width,) if width else ()
            meta = TensorMeta(scalar_type, sizes, type_name=type_name)
            values[built] = GraphValue(built, meta, constant=built, constant_bytes=len(value))
            self.weights[built] = value
            yield Argument(key, (built,))


def _add(values: dict[str, GraphValue], names: list[str], metas: list[TensorMeta]) -> None:
    for index, name in enumerate(names):
        known = values.get(name)
        if known is None or known.tensor is None:
            meta = metas[index] if index < len(metas) else None
            values[name] = GraphValue(name, meta)
