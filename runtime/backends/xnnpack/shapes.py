"""Nodes that move elements: permute, reshape, slice, concatenate, pad and resize."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from runtime.backends.xnnpack.model import PayloadNode
from runtime.backends.xnnpack.node_calls import (
    NodeCall,
    Values,
    chain,
    check_size,
    moving,
    same_representation,
)
from runtime.backends.xnnpack.representation import (
    Change,
    Tensor,
    from_real,
    quantized_range_of,
    to_real,
)
from runtime.errors import invalid_argument
from runtime.untyped import aten
from schema.payloads.xnnpack import nodes as n

_ALIGN_CORNERS = 8  # XNN_FLAG_ALIGN_CORNERS
_LEGACY = 4  # XNN_FLAG_TENSORFLOW_LEGACY_MODE


def _move(node: PayloadNode, values: Values, move: Change) -> NodeCall:
    source, target = values[node.inputs[0]], values[node.outputs[0]]
    return NodeCall(moving(source, target, move), node.inputs)


def transpose(node: PayloadNode, values: Values) -> NodeCall:
    """Bind StaticTranspose."""
    assert isinstance(node.form, n.StaticTranspose)
    order = node.form.perm
    return _move(node, values, lambda held: held.permute(order).contiguous())


def reshape(node: PayloadNode, values: Values) -> NodeCall:
    """Bind StaticReshape; a size of 0 is inferred."""
    assert isinstance(node.form, n.StaticReshape)
    shape = tuple(size or -1 for size in node.form.new_shape)
    return _move(node, values, lambda held: held.reshape(shape))


def slices(node: PayloadNode, values: Values) -> NodeCall:
    """Bind StaticSlice; a size of 0 reaches to the end."""
    assert isinstance(node.form, n.StaticSlice)
    offsets, sizes = node.form.offsets, node.form.sizes

    def run(held: Tensor) -> Tensor:
        if held.dim() != len(offsets):
            raise invalid_argument(f"{len(offsets)} offsets for the shape {list(held.shape)}")
        for dim, (offset, size) in enumerate(zip(offsets, sizes, strict=True)):
            whole = held.shape[dim]
            length = size or whole - offset
            if offset + length > whole or length < 0:
                raise invalid_argument(
                    f"a slice of {length} elements from {offset} of {whole} in dimension {dim}"
                )
            if length != whole:
                held = held.narrow(dim, offset, length)
        return held.contiguous()

    return _move(node, values, run)


def concatenate(node: PayloadNode, values: Values) -> NodeCall:
    """Bind the concatenation of two to five values."""
    assert isinstance(node.form, n.Concatenate)
    axis, target = node.form.axis, values[node.outputs[0]]
    if all(same_representation(values[ident], target) for ident in node.inputs):
        return NodeCall(lambda *held: torch.cat(held, axis), node.inputs)
    changes = [to_real(values[ident]) for ident in node.inputs]
    done = from_real(target)

    def run(*held: Tensor) -> Tensor:
        real = [one if change is None else change(one) for change, one in zip(changes, held)]  # noqa: B905 - both are the operands
        found = torch.cat(real, axis)
        return found if done is None else done(found)

    return NodeCall(run, node.inputs)


def pad(node: PayloadNode, values: Values) -> NodeCall:
    """Bind StaticConstantPad."""
    assert isinstance(node.form, n.StaticPad)
    form, source = node.form, values[node.inputs[0]]
    padding: list[int] = []
    for pre, post in zip(reversed(form.pre_paddings), reversed(form.post_paddings), strict=True):
        padding += [pre, post]
    steps = quantized_range_of(source)
    fill_value = form.padding_value if steps is None else steps.nearest(form.padding_value)

    def run(held: Tensor) -> Tensor:
        if 2 * held.dim() != len(padding):
            raise invalid_argument(f"{len(padding)} paddings for the shape {list(held.shape)}")
        check_size(math.prod(map(sum, zip(held.shape, _each(padding), strict=True))), held.numel())
        return aten.constant_pad_nd.default(held, padding, fill_value)

    return _move(node, values, run)


def _each(padding: Sequence[int]) -> list[int]:
    pairs = [padding[at] + padding[at + 1] for at in range(0, len(padding), 2)]
    return pairs[::-1]


def resize(node: PayloadNode, values: Values) -> NodeCall:
    """Bind StaticResizeBilinear2D."""
    assert isinstance(node.form, n.StaticResize)
    form = node.form
    size = [form.new_height, form.new_width]
    corners = bool(form.flags & _ALIGN_CORNERS)
    if form.flags & _LEGACY:
        raise invalid_argument("the legacy resize mode is not supported; no compiler writes it")

    def run(real: Tensor) -> Tensor:
        if real.dim() != 4:
            raise invalid_argument(f"an image has the shape {list(real.shape)}")
        check_size(real.shape[0] * size[0] * size[1] * real.shape[3], real.numel())
        image = real.permute(0, 3, 1, 2)
        found = aten.upsample_bilinear2d.default(image, size, corners)
        return found.permute(0, 2, 3, 1).contiguous()

    source, target = values[node.inputs[0]], values[node.outputs[0]]
    change = chain(to_real(source), run, from_real(target))
    assert change is not None
    return NodeCall(change, node.inputs)
