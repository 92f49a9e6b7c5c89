"""Shapes and layouts in which a delegate may hold the value of a recorded node."""

from __future__ import annotations

from typing import Any

_IMAGES = (4, 5)  # dimensions
_SEQUENCE = 3


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
    channels_first = (0, found.dim() - 1, *range(1, found.dim() - 1))
    first = tuple(found.shape[dim] for dim in channels_first) if found.dim() else ()
    if moved and found.dim() in _IMAGES:
        orders += [channels_first] if len(shape) < found.dim() or first == shape else []
    elif moved and found.dim() == _SEQUENCE and tuple(found.shape) != shape:
        orders += [channels_first] if first == shape else []
    whole = dict.fromkeys(tuple(dim for dim in one if found.shape[dim] != 1) for one in orders)
    fitting = [one for one in whole if [found.shape[dim] for dim in one] == requested]
    ones = [dim for dim in range(found.dim()) if found.shape[dim] == 1]
    return [found.permute((*one, *ones)).reshape(shape) for one in fitting]
