"""The packaged sample: a session and the recipe it was compiled by."""

from __future__ import annotations

from pathlib import Path

SAMPLE = Path(__file__).parent / "keyword_net"
MODULE = Path(__file__).parent / "demo" / "keyword_spotter.py"
