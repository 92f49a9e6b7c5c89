"""Open a source file in the user's own editor, without a shell."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Mapping
from pathlib import Path

FILE, LINE = "{file}", "{line}"
# asked in this order while the user has not chosen; all of them return at once
KNOWN = (
    ("code", "code --goto {file}:{line}"),
    ("codium", "codium --goto {file}:{line}"),
    ("subl", "subl {file}:{line}"),
    ("kate", "kate --line {line} {file}"),
    ("gedit", "gedit +{line} {file}"),
    ("pycharm", "pycharm --line {line} {file}"),
)


class EditorError(ValueError):
    """The file cannot be opened in an editor; the message names the remedy."""


def default_template(environment: Mapping[str, str] | None = None) -> str:
    """Return the command of an editor that is installed, empty if none is known."""
    values = os.environ if environment is None else environment
    visual = Path(values.get("VISUAL", "").split(" ")[0]).name
    for name, template in KNOWN:
        if visual == name:
            return template
    return next((template for name, template in KNOWN if shutil.which(name)), "")


def editor_command(template: str, file: Path, line: int) -> list[str]:
    """Return program and arguments for a template; file names are never read as options or shell.

    Args:
        template: words separated as in a shell; {file} and {line} are filled in after splitting,
            so blanks and quotes in a file name stay part of it
        file: an existing file
        line: line number from 1

    Raises: EditorError if the template is empty, cannot be split or its program is not found
    """
    try:
        text = _split(template)
    except ValueError as error:
        raise EditorError(f"the editor command cannot be read: {error}") from error
    if not text:
        raise EditorError("no editor is chosen; set its command in Preferences")
    program = shutil.which(text[0])
    if program is None:
        raise EditorError(f"the editor {text[0]} is not installed; see Preferences")
    path = str(file.absolute())
    filled = [word.replace(LINE, str(max(1, line))).replace(FILE, path) for word in text[1:]]
    if not any(FILE in word for word in text[1:]):
        filled.append(path)
    return [program, *filled]


def _split(template: str) -> list[str]:
    # on Windows a backslash separates folders and escapes nothing
    text = shlex.split(template, posix=os.name != "nt")
    return [word.strip('"') for word in text] if os.name == "nt" else text
