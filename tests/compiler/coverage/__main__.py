"""Writes docs/operator-coverage.md: python -m tests.compiler.coverage [PAGE]."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.compiler.coverage.inputs import DTYPES, core_operators, name_of
from tests.compiler.coverage.run import cells_of
from tests.compiler.coverage.table import PAGE, render
from tests.compiler.stock import Stock


def main() -> int:
    """Run every operator and write the page."""
    with tempfile.TemporaryDirectory() as folder:
        stock = Stock(Path(folder))
        rows = {name_of(op): cells_of(op, DTYPES, stock) for op in core_operators()}
        stock.close()
    page = Path(sys.argv[1]) if len(sys.argv) > 1 else PAGE
    page.write_text(render(rows), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
