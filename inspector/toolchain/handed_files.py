"""Names of the files in which a program goes to another interpreter to be quantized."""

from __future__ import annotations

PROGRAM_FILE, CALLS_FILE, QUANTIZED_FILE = "program.pt2", "calls.pt", "quantized.pt2"
