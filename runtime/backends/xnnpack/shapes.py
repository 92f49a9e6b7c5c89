"""Nodes that move elements: orders, shapes, slices, joins, margins and resized images."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from runtime.backends.xnnpack.model import Node
from runtime.backends.xnnpack.node_calls import Bound, Values, alike, chain, check_size, moved
from runtime.backends.xnnpack.representation import Change, Tensor, settle, steps_of, to_real
from runtime.errors import invalid_argument
from runtime.untyped import aten
from schema.payloads.xnnpack import nodes as n

_ALIGN_CORNERS = 8
_LEGACY = 4


def _move(node: Node, values: Values, move: Change) -> Bound:
    source, target = values[node.inputs[0]], values[node.outputs[0]]
    return Bound(moved(source, target, move), node.inputs)


def transpose(node: Node, values: Values) -> Bound:
    """Bind StaticTranspose."""
    assert isinstance(node.form, n.StaticTranspose)
    order = node.form.perm
    return _move(node, values, lambda held: held.permute(order).contiguous())


def reshape(node: Node, values: Values) -> Bound:
    """Bind StaticReshape; a size of 0 is inferred."""
    assert isinstance(node.form, n.StaticReshape)
    shape = tuple(size or -1 for size in node.form.new_shape)
    return _move(node, values, lambda held: held.reshape(shape))


def slices(node: Node, values: Values) -> Bound:
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
                    f"{length} elements from {offset} are cut out of {whole} in dimension {dim}"
                )
            if length != whole:
                held = held.narrow(dim, offset, length)
        return held.contiguous()

    return _move(node, values, run)


def concatenate(node: Node, values: Values) -> Bound:
    """Bind a concatenation of two to five values."""
    assert isinstance(node.form, n.Concatenate)
    axis, target = node.form.axis, values[node.outputs[0]]
    if all(alike(values[ident], target) for ident in node.inputs):
        return Bound(lambda *held: torch.cat(held, axis), node.inputs)
    changes = [to_real(values[ident]) for ident in node.inputs]
    done = settle(target)

    def run(*held: Tensor) -> Tensor:
        real = [one if change is None else change(one) for change, one in zip(changes, held)]  # noqa: B905 - both are the operands
        found = torch.cat(real, axis)
        return found if done is None else done(found)

    return Bound(run, node.inputs)


def pad(node: Node, values: Values) -> Bound:
    """Bind StaticConstantPad."""
    assert isinstance(node.form, n.StaticPad)
    form, source = node.form, values[node.inputs[0]]
    margins: list[int] = []
    for pre, post in zip(reversed(form.pre_paddings), reversed(form.post_paddings), strict=True):
        margins += [pre, post]
    steps = steps_of(source)
    filler = form.padding_value if steps is None else steps.near(form.padding_value)

    def run(held: Tensor) -> Tensor:
        if 2 * held.dim() != len(margins):
            raise invalid_argument(f"{len(margins)} margins for the shape {list(held.shape)}")
        check_size(math.prod(map(sum, zip(held.shape, _each(margins), strict=True))), held.numel())
        return aten.constant_pad_nd.default(held, margins, filler)

    return _move(node, values, run)


def _each(margins: Sequence[int]) -> list[int]:
    pairs = [margins[at] + margins[at + 1] for at in range(0, len(margins), 2)]
    return pairs[::-1]


def resize(node: Node, values: Values) -> Bound:
    """Bind StaticResizeBilinear2D."""
    assert isinstance(node.form, n.StaticResize)
    form = node.form
    size = [form.new_height, form.new_width]
    corners = bool(form.flags & _ALIGN_CORNERS)
    if form.flags & _LEGACY:
        raise invalid_argument("images are resized in the legacy way, which no compiler writes")

    def run(real: Tensor) -> Tensor:
        if real.dim() != 4:
            raise invalid_argument(f"an image has the shape {list(real.shape)}")
        check_size(real.shape[0] * size[0] * size[1] * real.shape[3], real.numel())
        image = real.permute(0, 3, 1, 2)
        found = aten.upsample_bilinear2d.default(image, size, corners)
        return found.permute(0, 2, 3, 1).contiguous()

    source, target = values[node.inputs[0]], values[node.outputs[0]]
    change = chain(to_real(source), run, settle(target))
    assert change is not None
    return Bound(change, node.inputs)
