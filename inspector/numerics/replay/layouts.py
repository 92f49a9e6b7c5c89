"""Shapes and layouts in which a delegate may hold the value of a recorded node."""

from __future__ import annotations

from typing import Any

_IMAGE_DIMS = 4  # dimensions
_CHANNELS_FIRST = (0, 3, 1, 2)  # of channels last


def in_layouts(found: Any, shape: tuple[int, ...], *, moved: bool) -> list[Any]:  # noqa: ANN401
    """Return a tensor of a delegate in a shape, in each layout that it may have.

    Dimensions of size one may stand anywhere: a mean may keep its reduced ones, and a 1-d
    convolution is a 2-d convolution of height one. Empty for any other difference in shape.

    Args:
        found: logged tensor
        shape: of the recorded value
        moved: whether its channels may be the last dimension
    """
    requested = [size for size in shape if size != 1]
    orders = [tuple(range(found.dim()))]
    if moved and found.dim() == _IMAGE_DIMS:
        first = tuple(found.shape[dim] for dim in _CHANNELS_FIRST)
        orders += [_CHANNELS_FIRST] if len(shape) < _IMAGE_DIMS or first == shape else []
    whole = dict.fromkeys(tuple(dim for dim in one if found.shape[dim] != 1) for one in orders)
    fitting = [one for one in whole if [found.shape[dim] for dim in one] == requested]
    ones = [dim for dim in range(found.dim()) if found.shape[dim] == 1]
    return [found.permute((*one, *ones)).reshape(shape) for one in fitting]
