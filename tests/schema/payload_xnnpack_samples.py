"""One small XNNPACK graph a node kind, and a program around a graph that stock can run."""

from __future__ import annotations

from dataclasses import fields

import numpy as np

from schema.payloads.xnnpack import codec
from schema.payloads.xnnpack import model as x
from schema.payloads.xnnpack import nodes as n
from schema.payloads.xnnpack.nodes import FORM_OF_KIND
from schema.program import encode
from schema.program import model as m
from schema.program.program import ProgramFile

FP32, INT32 = 1, 12
_CONV = {
    "padding_top": 1, "padding_right": 1, "padding_bottom": 1, "padding_left": 1,
    "kernel_height": 3, "kernel_width": 3, "subsampling_height": 1, "subsampling_width": 1,
    "dilation_height": 1, "dilation_width": 1,
}  # fmt: skip
_POOL = {
    "pooling_height": 2, "pooling_width": 2, "stride_height": 2, "stride_width": 2,
    "dilation_height": 1, "dilation_width": 1,
}  # fmt: skip


class Builder:
    """Collects values and constants of a graph; ids are positions."""

    def __init__(self) -> None:
        self.values: list[x.XValue] = []
        self.area = bytearray()
        self.table = [x.ConstantDataOffset(named_key="")]

    def tensor(self, dims, *, external=x.NO_VALUE, flags=0, datatype=FP32, constant=None) -> int:
        index = 0
        if constant is not None:
            self.area += bytes(-len(self.area) % 16)
            self.table.append(x.ConstantDataOffset(len(self.area), constant.nbytes))
            self.area += constant.tobytes()
            index = len(self.table) - 1
        ident = len(self.values)
        tensor = x.TensorValue(datatype, len(dims), tuple(dims), index, external, flags, ident)
        self.values.append(x.XValue(tensor))
        return ident

    def graph(self, nodes, externs) -> x.XNNGraph:
        inputs = tuple(v.tensor.id_out for v in self.values if v.tensor.flags & 1)
        outputs = tuple(v.tensor.id_out for v in self.values if v.tensor.flags & 2)
        table = x.XnnGraphTable(
            "0", tuple(nodes), tuple(self.values), externs, inputs, outputs,
            constant_data=tuple(self.table),
        )  # fmt: skip
        return x.XNNGraph(table, memoryview(bytes(self.area)).toreadonly())


def sample(kind: str) -> tuple[x.XNNGraph, list[tuple[int, ...]], list[tuple[int, ...]]]:
    """Return a graph with one node of a kind, the shapes of its inputs and of its outputs."""
    form = FORM_OF_KIND[kind]
    build = Builder()
    ins, outs, arguments = _SHAPES.get(kind, _DEFAULT[form])(kind)
    named = {}
    for position, (name, dims) in enumerate(ins):
        named[name] = build.tensor(dims, external=position, flags=1)
    for name, array in arguments.pop("constants", {}).items():
        named[name] = build.tensor(array.shape, constant=array)
    datatypes = arguments.pop("out_types", {})
    for position, (name, dims) in enumerate(outs, start=len(ins)):
        named[name] = build.tensor(
            dims, external=position, flags=2, datatype=datatypes.get(name, FP32)
        )
    bounds = arguments.pop("bounds", None)
    unused = {
        f.name: x.NO_VALUE for f in fields(form) if f.name.endswith("_id") and f.name not in named
    }
    node = x.XNode(form(kind, **{**unused, **named, **arguments}), 7, bounds)
    graph = build.graph([node], len(ins) + len(outs))
    return graph, [dims for _, dims in ins], [dims for _, dims in outs]


def _ones(*dims) -> np.ndarray:
    return np.full(dims, 0.5, dtype=np.float32)


def _unary(kind):
    return [("input_id", (2, 8))], [("output_id", (2, 8))], {}


def _binary(kind):
    ins = [("input1_id", (1, 2, 2, 4)), ("input2_id", (1, 2, 2, 4))]
    return ins, [("output_id", (1, 2, 2, 4))], {}


def _clamp(kind):
    return *_unary(kind)[:2], {"bounds": x.OutputMinMax(0.0, 0.75)}


def _prelu(kind):
    constants = {"input2_id": _ones(8)}
    return [("input1_id", (2, 8))], _unary(kind)[1], {"constants": constants}


def _matmul(kind):
    ins = [("input1_id", (2, 3, 4)), ("input2_id", (2, 4, 5))]
    return ins, [("output_id", (2, 3, 5))], {}


def _conv(kind):
    constants = {"filter_id": _ones(8, 3, 3, 4), "bias_id": _ones(8)}
    sizes = {"group_input_channels": 4, "group_output_channels": 8, "groups": 1}
    return (
        [("input1_id", (1, 6, 6, 4))],
        [("output_id", (1, 6, 6, 8))],
        {**_CONV, **sizes, "constants": constants},
    )


def _depthwise(kind):
    constants = {"filter_id": _ones(1, 3, 3, 4), "bias_id": _ones(4)}
    sizes = {"group_input_channels": 1, "group_output_channels": 1, "groups": 4}
    return (
        [("input1_id", (1, 6, 6, 4))],
        [("output_id", (1, 6, 6, 4))],
        {**_CONV, **sizes, "constants": constants},
    )


def _pool(kind):
    return [("input_id", (1, 4, 4, 4))], [("output_id", (1, 2, 2, 4))], dict(_POOL)


def _argmax(kind):
    outs = [("output_value_id", (1, 2, 2, 4)), ("output_index_id", (1, 2, 2, 4))]
    extra = {"pooling_height": 2, "pooling_width": 2, "out_types": {"output_index_id": INT32}}
    return [("input_id", (1, 4, 4, 4))], outs, extra


def _linear(kind):
    constants = {"filter_id": _ones(3, 8), "bias_id": _ones(3)}
    return [("input1_id", (2, 8))], [("output_id", (2, 3))], {"constants": constants}


def _cat(kind):
    count = int(kind[-1])
    ins = [(f"input{number}_id", (2, number)) for number in range(1, count + 1)]
    return ins, [("output_id", (2, sum(range(count + 1))))], {"axis": 1}


def _transpose(kind):
    ends = [("input_id", (2, 3, 4))], [("output_id", (4, 2, 3))]
    return *ends, {"num_dims": 3, "perm": (2, 0, 1)}


def _resize(kind):
    ends = [("input_id", (1, 2, 2, 4))], [("output_id", (1, 4, 4, 4))]
    return *ends, {"new_height": 4, "new_width": 4}


def _pad(kind):
    arguments = {"pre_paddings": (0, 1), "post_paddings": (1, 0), "padding_value": 2.5}
    return [("input_id", (2, 3))], [("output_id", (3, 4))], arguments


def _reshape(kind):
    return [("input_id", (2, 6))], [("output_id", (3, 4))], {"num_dims": 2, "new_shape": (3, 4)}


def _slice(kind):
    arguments = {"num_dims": 2, "offsets": (0, 1), "sizes": (2, 3)}
    return [("input_id", (2, 5))], [("output_id", (2, 3))], arguments


def _pooled(kind):
    return [("input_id", (1, 4, 4, 4))], [("output_id", (1, 1, 1, 4))], {"flags": 0x40}


def _attention(kind):
    ins = [(f"{name}_id", (1, 2, 4, 8)) for name in ("query", "key", "value")]
    constants = {"scale_id": _ones(8), "mask_id": _ones(4, 4)}
    return ins, [("output_id", (1, 2, 4, 8))], {"constants": constants}


def _sloped(kind):
    name = "alpha" if kind == "ELU" else "negative_slope"
    return *_unary(kind)[:2], {name: 0.25}


_DEFAULT = {
    n.Unary: _unary, n.Binary: _binary, n.Concatenate: _cat, n.Convolution: _conv,
    n.Pooling: _pool, n.ArgMaxPooling: _argmax, n.FullyConnected: _linear,
    n.StaticTranspose: _transpose, n.StaticResize: _resize, n.StaticPad: _pad,
    n.StaticReshape: _reshape, n.StaticSlice: _slice, n.LeakyReLU: _sloped, n.ELU: _sloped,
    n.Attention: _attention,
}  # fmt: skip
_SHAPES = {
    "Clamp": _clamp, "PReLU": _prelu, "BatchMatrixMultiply": _matmul,
    "DepthwiseConv2d": _depthwise, "GlobalAvgPooling2d": _pooled,
}  # fmt: skip


def program(graph: x.XNNGraph, ins, outs, *, out_types=None, named=None) -> bytes:
    """Return a ``.pte`` whose only instruction calls the graph as an XNNPACK delegate."""
    values, sizes, place = [], [*ins, *outs], 0
    for index, dims in enumerate(sizes):
        kind = (out_types or {}).get(index, 6)
        where = m.AllocationDetails(1, place, 0)
        order = tuple(range(len(dims)))
        tensor = m.Tensor(kind, 0, tuple(dims), order, False, 0, where, 0, 0, None)
        values.append(m.EValue(tensor))
        place += -(-int(np.prod(dims)) * 8 // 16) * 16 + 64
    call = m.Instruction(m.DelegateCall(0, tuple(range(len(sizes)))))
    chain = m.Chain((), (), (call,), None)
    reference = m.BackendDelegateDataReference(1, 1)
    delegate = m.BackendDelegate("XnnpackBackend", reference, ())
    count = len(ins)
    plan = m.ExecutionPlan(
        "forward", m.ContainerMetadata("", ""), tuple(values), tuple(range(count)),
        tuple(range(count, len(sizes))), (chain,), (), (delegate,), (0, place), None,
    )  # fmt: skip
    blobs = [b"", codec.encode(graph), *(named or {}).values()]
    keys = tuple(m.NamedData(key, index) for index, key in enumerate(named or {}, start=2))
    table = m.ProgramTable(
        version=0,
        execution_plan=(plan,),
        constant_buffer=None,
        backend_delegate_data=None,
        segments=tuple(m.DataSegment(0, len(blob)) for blob in blobs),
        constant_segment=m.SubsegmentOffsets(0, (0,)),
        mutable_data_segments=None,
        named_data=keys or None,
    )
    return encode(ProgramFile(table, None, tuple(memoryview(blob) for blob in blobs)))
