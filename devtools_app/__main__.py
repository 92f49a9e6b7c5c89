"""The command ``etscope``: a verb goes to the command line, anything else opens the window."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Sequence

from inspector.units import TICK_UNITS

EXTRA_VERBS = {
    "open": "the window, with these files open; the default without a verb",
    "screenshot": "a screenshot of any view, without a display",
}
_OPEN_HELP = """usage: etscope [open] [--watch] [--source-time-scale UNIT] [FILE ...]

The window, with these files open as one session.

positional arguments:
  FILE        files or folders, any mix

options:
  -h, --help  show this help message and exit
  --watch     open them again when they change, with what is new in folders
  --source-time-scale {ns,us,ms,s,cycles}
              unit of ETDump ticks; default: that of the preferences

examples:
  etscope model.pte model.etrecord run.etdp run.debug
  etscope open runs/mobilenet --watch
  etscope runs/before runs/after          two folders with a program: two sessions
  etscope model.pte energy.csv            the graph coloured by values of nodes
"""
_SCALE = "--source-time-scale"
_USAGE, _INTERRUPTED = 2, 130  # 130 is 128 + SIGINT, as shells report it
_BAD_QT = (6, 12)  # loses references to None there; see docs/decisions.md
_GOOD_PYTHON = (3, 12)  # None is immortal from here on


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``etscope`` and return its exit code.

    Args:
        argv: arguments without the program's name; those of the process when None
    """
    try:
        return _main(list(sys.argv[1:] if argv is None else argv))
    except KeyboardInterrupt:  # also while modules are imported, before a verb can say so
        sys.stderr.write("etscope: interrupted\n")
        return _INTERRUPTED


def _main(arguments: list[str]) -> int:
    if arguments and arguments[0] == "screenshot":
        from devtools_app.screenshots.verb import main as take_screenshot

        return take_screenshot(arguments[1:])
    if arguments and not _opens_window(arguments[0]):
        from inspector.cli import main as run_verb

        return run_verb(arguments, EXTRA_VERBS)
    if arguments and arguments[0] == "open":
        arguments = arguments[1:]
    if "-h" in arguments or "--help" in arguments:
        sys.stdout.write(_OPEN_HELP)
        return 0
    watch = "--watch" in arguments
    paths, tick = _without_scale([one for one in arguments if one != "--watch"])
    if tick is None:
        return _refuse(f"{_SCALE} needs one of {', '.join(TICK_UNITS)}")
    unknown = [argument for argument in paths if argument.startswith("-")]
    if unknown:
        return _refuse(f"unknown option {unknown[0]}; etscope --help lists verbs and options")
    reason = why_no_window()
    if reason:
        return _refuse(reason)
    from devtools_app.app import leave, run

    others = frozenset(threading.enumerate())
    return leave(run(paths, watch=watch, tick=tick), others)


def _without_scale(arguments: list[str]) -> tuple[list[str], str | None]:
    """Return the other arguments and the tick unit; None if it is unknown."""
    rest: list[str] = []
    tick: str | None = ""
    left = iter(arguments)
    for one in left:
        name, equals, value = one.partition("=")
        if name != _SCALE:
            rest.append(one)
            continue
        given = value if equals else next(left, "")
        tick = given if given in TICK_UNITS else None
    return rest, tick


def _opens_window(first: str) -> bool:
    """Return whether the first argument is neither a verb nor a help option."""
    if first.startswith("-"):
        return first == "--watch" or first.partition("=")[0] == _SCALE
    if first == "open" or os.sep in first or "." in os.path.basename(first):
        return True
    from inspector.cli import VERBS  # not before: it imports the readers

    # a word that is neither a verb nor a file is left to the command line, which knows near misses
    return first not in VERBS and os.path.exists(first)


def why_no_window() -> str:
    """Return one sentence on why the window cannot open, empty when it can."""
    return _bad_qt() or _no_display()


def _bad_qt() -> str:
    version = _qt_version()
    if not version:
        return "the window needs PySide6; install it with: pip install 'PySide6-Essentials<6.12'"
    found = tuple(int(part) for part in version.split(".")[:2])
    if found >= _BAD_QT and sys.version_info[:2] < _GOOD_PYTHON:
        python = ".".join(map(str, sys.version_info[:2]))
        return (
            f"PySide6 {version} corrupts memory on Python {python}; "
            "install another with: pip install 'PySide6-Essentials<6.12'"
        )
    return ""


def _qt_version() -> str:
    # importlib.metadata would know without importing Qt, but costs a twentieth of a second
    try:
        import PySide6
    except ImportError:
        return ""
    return PySide6.__version__


def _no_display() -> str:
    if sys.platform in ("win32", "darwin") or os.environ.get("QT_QPA_PLATFORM"):
        return ""
    if os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"):
        return ""
    return (
        "no display to open a window on; the verbs work without one, for example: etscope "
        "summary FILES"
    )


def _refuse(reason: str) -> int:
    sys.stderr.write(f"etscope: {reason}\n")
    return _USAGE


if __name__ == "__main__":
    sys.exit(main())
