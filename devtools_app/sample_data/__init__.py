"""The packaged samples: a session, and two variants with all that the loop makes of them."""

from __future__ import annotations

from pathlib import Path

SAMPLE = Path(__file__).parent / "keyword_net"
MODULE = Path(__file__).parent / "demo" / "keyword_spotter.py"
LOOP = tuple(
    str(MODULE.with_name(f"{name}{ending}"))
    for name in (MODULE.stem, f"{MODULE.stem}_changed")
    for ending in ("", ".etrecord")
)
"""A program and a variant of it: folders with their runs, and their records."""
