"""The one place of this package that loads pandas, when a table is requested."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from pandas import DataFrame  # pyright: ignore[reportMissingTypeStubs] - its types are inline
else:
    DataFrame = Any

__all__ = ["DataFrame", "Pandas", "joined", "load_pandas"]

Pandas: TypeAlias = Any  # the module, or what is made with it


def load_pandas() -> Pandas:
    """Return pandas; the first call imports it."""
    import pandas  # pyright: ignore[reportMissingTypeStubs] - its types are inline

    return pandas


def joined(frames: Sequence[Pandas]) -> Pandas:
    """Return frames below each other.

    The treatment of columns without a value is the installed pandas' choice, as in the stock tool;
    the overloads are of no use to a caller.
    """
    pandas = load_pandas()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        return pandas.concat(frames, ignore_index=True)
