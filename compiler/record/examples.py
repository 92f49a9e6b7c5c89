"""Example inputs as a record holds them."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, cast

import torch
from torch.utils import _pytree

_PLAIN = (torch.Tensor, str, int, float, type(None))
_flatten: Any = cast("Any", _pytree).tree_flatten


def plain_containers(value: Any) -> Any:  # noqa: ANN401
    """Return inputs as plain lists, tuples and dictionaries with the same leaves in the same order.

    Data classes, named tuples and the like are classes of the user. Readers of records, the stock
    tool included, do not load these and would reject the entire record.
    """
    if isinstance(value, _PLAIN):
        return value
    if type(value) is list:
        return [plain_containers(item) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        given = cast("dict[Any, Any]", value)
        items = {name: plain_containers(item) for name, item in given.items()}
        return OrderedDict(items) if type(given) is OrderedDict else items

    def is_part(found: Any) -> bool:  # noqa: ANN401
        return found is not value

    parts = _flatten(value, is_leaf=is_part)[0]
    if len(parts) == 1 and parts[0] is value:  # no container
        return value
    return tuple([plain_containers(part) for part in parts])
