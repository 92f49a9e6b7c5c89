"""Print what the stock tool says about a session folder: python -m tests.oracle.facts FOLDER."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from tests.oracle.client import Oracle


def main() -> int:
    """Ask for one session and print the answer as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    with Oracle() as oracle:
        json.dump(oracle(options.folder), sys.stdout, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
