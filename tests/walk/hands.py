"""Mouse and keyboard of a display: real events of the X server, by xdotool."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Mapping

from tests.walk.desktop import find_program

_PAUSE = 0.06  # seconds between a move and a press, as of a hand
LEFT, MIDDLE, RIGHT = 1, 2, 3


class Hands:
    """Presses keys and buttons.

    Attributes:
        at: the pixel of the pointer
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = dict(environment)
        self.at = (0, 0)
        self._tool = find_program("xdotool") or "xdotool"

    def press(self, *keys: str) -> None:
        """Press keys one after the other, each by its X name, as ctrl+r."""
        self._run("key", "--delay", "40", *keys)

    def write(self, text: str) -> None:
        """Type a text."""
        self._run("type", "--delay", "25", text)

    def move(self, x: int, y: int) -> None:
        """Move the pointer to a pixel of the screen."""
        self._run("mousemove", str(x), str(y))
        self.at = (x, y)
        time.sleep(_PAUSE)

    def click(self, x: int, y: int, button: int = LEFT, *, times: int = 1) -> None:
        """Click at a pixel of the screen."""
        self.move(x, y)
        self._run("click", "--repeat", str(times), "--delay", "80", str(button))

    def _run(self, *arguments: str) -> None:
        subprocess.run(
            [self._tool, *arguments], env=self._environment, check=True, capture_output=True
        )
