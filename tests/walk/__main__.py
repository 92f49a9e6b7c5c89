"""Walk the whole loop on a display of its own, with the mouse and with the keyboard alone."""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

from tests.architecture.tree import ROOT
from tests.walk.desktop import missing_packages

HANDS = ("mouse", "keys")


def main() -> int:
    """Walk and return the exit code: 1 when a step fails, 2 when packages are missing."""
    parser = argparse.ArgumentParser(prog="make walk", description=__doc__)
    parser.add_argument("hands", nargs="*", choices=[*HANDS, []], help="default: both")
    parser.add_argument("--output", type=Path, default=ROOT / "walk-output")
    parser.add_argument("--size", default="1440x900", help="of the display, as 1280x720")
    options = parser.parse_args()
    missing = missing_packages()
    if missing:
        sys.stderr.write(f"make walk needs: apt-get install {' '.join(missing)}\n")
        return 2
    width, _, height = options.size.partition("x")
    failed = 0
    for hands in options.hands or HANDS:
        folder = options.output / hands
        shutil.rmtree(folder, ignore_errors=True)
        failed |= walk(folder, (int(width), int(height)), keys=hands == "keys")
    sys.stdout.write(f"screenshots: {options.output}\n")
    return failed


def walk(folder: Path, size: tuple[int, int], *, keys: bool) -> int:
    """Walk once; return 1 when a step fails."""
    from tests.walk.desktop import Desktop
    from tests.walk.loop import walked
    from tests.walk.walker import Walker, WalkError

    with Desktop(*size) as desktop:
        walker = Walker(desktop, folder)
        try:
            for title in walked(walker, keys=keys):
                sys.stdout.write(f"{folder.name}: {title}: {walker.seconds[title]:.1f} s\n")
                sys.stdout.flush()
        except WalkError as error:
            sys.stdout.write(f"{folder.name}: failed: {error}\n")
            return 1
        finally:
            walker.close()
    total = sum(walker.seconds.values())
    sys.stdout.write(f"{folder.name}: {len(walker.seconds)} steps in {total:.0f} s\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
