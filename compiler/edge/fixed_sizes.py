"""Guards against lowering that specializes a dynamic size."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from typing import Any, cast

from compiler.errors import UnsupportedError


@contextlib.contextmanager
def sizes_kept(shape_env: Any, op: Any) -> Generator[None, None, None]:  # noqa: ANN401
    """Reject an operator that specializes a symbol.

    If torch's result depends on a size it fixes the size of the example inputs: the
    program would be planned for that size only, and the original program would be changed too,
    since they share symbols. So torch is stopped before it specializes.

    Args:
        shape_env: torch's facts about symbols, None without symbols
        op: the operator that is lowered inside

    Raises: UnsupportedError naming the symbol and its value
    """
    if shape_env is None:
        yield
        return
    note: Any = shape_env._set_replacement
    ranges: dict[Any, Any] = dict(shape_env.var_to_range)

    def refuse_specialization(symbol: Any, value: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        if value.is_number and symbol not in shape_env.replacements:
            shape_env.var_to_range.update(ranges)
            raise UnsupportedError(f"{op} specializes a size: {symbol} would always be {value}")
        return note(symbol, value, *args, **kwargs)

    outer: Any = cast("dict[str, Any]", vars(shape_env)).get("_set_replacement")
    shape_env._set_replacement = refuse_specialization
    try:
        yield
    finally:
        if outer is None:
            del shape_env._set_replacement
        else:
            shape_env._set_replacement = outer
