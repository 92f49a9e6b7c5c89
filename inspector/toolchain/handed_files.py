"""Names of the files in which a program goes to another interpreter."""

from __future__ import annotations

PROGRAM_FILE, CALLS_FILE, QUANTIZED_FILE = "program.pt2", "calls.pt", "quantized.pt2"
NAMES_MEMBER = "names.json"  # of calls in order: a program keeps none of some
CUSTOM_MEMBER = "custom.json"  # notes of quantizers at nodes, which vendors' partitioners look for
