"""The verb ``screenshot``: a screenshot of any view, without a display."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from devtools_app.screenshots import window as shots
from inspector.cli.answer import CommandError
from inspector.cli.output import refuse_existing

_USAGE, _UNREADABLE = 2, 3


def main(arguments: Sequence[str]) -> int:
    """Take one screenshot, or one of every view into a folder; return the exit code."""
    shots.use_no_screen()
    options = _parser().parse_args(arguments)
    target = Path(options.output)
    width, _, height = options.size.partition("x")
    if not (width.isdigit() and height.isdigit() and 0 < int(width) * int(height) <= 8192 * 8192):
        return _refuse(f"--size takes WIDTHxHEIGHT, not {options.size}", _USAGE)
    for path in options.files:
        if not Path(path).exists():
            return _refuse(f"{path}: no such file or folder", _UNREADABLE)
    size = (int(width), int(height))
    every = (*shots.view_names(), *shots.panel_names())
    paths = {view: target / f"{view}.png" for view in every}
    if options.view != "all":
        paths = {options.view: target}
    try:
        for path in paths.values():
            refuse_existing(path, force=options.force)
        with shots.open_window(options.files) as window:
            for view, path in paths.items():
                shot = shots.Shot(view, size, options.theme == "dark", options.scale)
                shots.write(window, shot, path, force=options.force)
                shots.print_line(str(path))
    except shots.NotReadyError as error:
        return _refuse(str(error), _UNREADABLE)
    except CommandError as error:
        return _refuse(str(error), error.code)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="etscope screenshot",
        description="A screenshot of any view, without a display.",
        epilog="examples:\n"
        "  etscope screenshot model.pte -o overview.png\n"
        "  etscope screenshot runs/mobilenet --view all --theme dark -o screenshots",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("files", nargs="+", metavar="FILE", help="files or folders, any mix")
    parser.add_argument("-o", "--output", required=True, help="PNG file; a folder for --view all")
    parser.add_argument(
        "--view",
        default="overview",
        choices=(*shots.view_names(), *shots.panel_names(), "all"),
        help="default: overview; all: one of each",
    )
    parser.add_argument(
        "--theme", default="light", choices=("light", "dark"), help="default: light"
    )
    parser.add_argument(
        "--size", default="1280x800", metavar="WIDTHxHEIGHT", help="default: 1280x800"
    )
    parser.add_argument("--scale", type=float, default=1.0, help="2 for twice the resolution")
    parser.add_argument("--force", action="store_true", help="replace existing images")
    return parser


def _refuse(sentence: str, code: int) -> int:
    sys.stderr.write(f"etscope screenshot: {sentence}\n")
    return code
