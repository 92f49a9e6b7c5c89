"""The one place of this package that loads pandas, when a table is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from pandas import DataFrame  # pyright: ignore[reportMissingTypeStubs] - its types are inline
else:
    DataFrame = Any

__all__ = ["DataFrame", "Pandas", "load_pandas"]

Pandas: TypeAlias = Any  # the module, or what is made with it


def load_pandas() -> Pandas:
    """Return pandas; the first call imports it."""
    import pandas  # pyright: ignore[reportMissingTypeStubs] - its types are inline

    return pandas
