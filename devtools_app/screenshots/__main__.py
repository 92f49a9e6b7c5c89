"""The screenshots of the documentation: python -m devtools_app.screenshots docs/images."""

from __future__ import annotations

import sys
from pathlib import Path

from devtools_app.sample_data import LOOP
from devtools_app.screenshots import window as shots
from devtools_app.screenshots.first_minute import write_first_minute
from devtools_app.screenshots.job_panels import write_gap
from devtools_app.screenshots.walkthrough import write_loop
from inspector.tables.selection import Selection, SelectionKind

_LARGE = (1440, 900)
_DARK = ("overview", "graph", "timeline")
_VIEWS = (*_DARK, "memory", "size", "partitions", "source", "structure", "tensor")  # of files alone


def main() -> int:
    """Write a screenshot of each view that files fill, some dark as well, and the walk-through."""
    shots.use_no_screen()
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/images")
    with shots.open_window(LOOP[:2]) as window:
        method = window.store.state.method
        chosen = Selection(SelectionKind.INSTRUCTION, method=method, instruction=2)
        for view in _VIEWS:
            shot = shots.Shot(view, _LARGE, selection=chosen)
            _write(window, shot, folder / f"{view}_light.png")
            if view in _DARK:
                dark = shots.Shot(view, _LARGE, dark=True, selection=chosen)
                _write(window, dark, folder / f"{view}_dark.png")
        write_gap(window, folder)
    write_loop(folder)
    write_first_minute(folder)
    return 0


def _write(window: shots.MainWindow, shot: shots.Shot, path: Path) -> None:
    shots.write(window, shot, path)
    shots.print_line(str(path))


if __name__ == "__main__":
    sys.exit(main())
