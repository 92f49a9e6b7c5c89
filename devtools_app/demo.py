"""The demo: the window on the packaged sample, or its pictures where there is no display."""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import sys
from pathlib import Path

from devtools_app.__main__ import main as etscope
from devtools_app.__main__ import why_no_window

SAMPLE = Path(__file__).parent / "sample_data" / "keyword_net"


def main() -> int:
    """Open the sample; without a display write screenshots and the summary and say where."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", default="demo-output", help="folder for a run without display")
    options = parser.parse_args()
    if not why_no_window() and os.environ.get("QT_QPA_PLATFORM") != "offscreen":
        sys.stdout.write(f"opening the sample session {SAMPLE.name}\n")
        return etscope(["open", str(SAMPLE)])
    folder = Path(options.output)
    folder.mkdir(parents=True, exist_ok=True)
    text = _summary()
    (folder / "summary.txt").write_text(text, encoding="utf-8")
    sys.stdout.write(text)
    pictures = _pictures(folder)
    sys.stdout.write(
        f"There is no display: {pictures} pictures of the window and summary.txt"
        f" are in {folder.resolve()}\n"
    )
    return 0


def _summary() -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        etscope(["summary", str(SAMPLE)])
    return out.getvalue()


def _pictures(folder: Path) -> int:
    from devtools_app import shots

    shots.use_no_screen()
    count = 0
    with shots.open_window([str(SAMPLE)]) as window:
        for view in shots.view_names():
            for dark in (False, True):
                name = f"{view}_{'dark' if dark else 'light'}.png"
                shots.write(window, shots.Shot(view, dark=dark), folder / name)
                count += 1
    return count


if __name__ == "__main__":
    sys.exit(main())
