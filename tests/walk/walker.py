"""One walk through the window: acts by real events, looks by the accessibility bus."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from tests.walk.desktop import Desktop, end
from tests.walk.hands import LEFT, Hands
from tests.walk.screen_reader import Item, ScreenReader, State

_POLL = 0.15  # seconds between two looks
PATIENCE = 20.0  # seconds for what the window does by itself
JOB_PATIENCE = 120.0  # seconds for what a worker does; it loads torch first
_MOST_TABS = 60
_TEXT_FIELDS = ("text", "entry")
Answer = TypeVar("Answer")


class WalkError(Exception):
    """A step did not show what it has to show."""


class Walker:
    """The program on its desktop, with eyes and hands.

    Attributes:
        hands: mouse and keyboard
        reader: the accessibility bus
        process: the program
        seconds: of each step that was walked
    """

    def __init__(self, desktop: Desktop, output: Path) -> None:
        self._desktop = desktop
        self._output = output
        self._began = time.monotonic()
        self.seconds: dict[str, float] = {}
        self._errors = output / "stderr.txt"
        output.mkdir(parents=True, exist_ok=True)
        with self._errors.open("w") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "devtools_app"],
                env={**desktop.environment, "PYTHONFAULTHANDLER": "1"},
                stdin=subprocess.DEVNULL,
                stderr=errors,
            )
        self.hands = Hands(desktop.environment)
        self.reader = ScreenReader(desktop.bus_address)

    def close(self) -> None:
        """End the program if it still runs."""
        end(self.process)
        self.reader.close()

    @property
    def complaints(self) -> str:
        """Return what the program wrote to its error output."""
        return self._errors.read_text().strip()

    def done(self, step: str) -> None:
        """Keep the time and a screenshot of a step that was walked."""
        number = len(self.seconds) + 1
        name = re.sub(r"\W+", "_", step.lower())
        self._desktop.screenshot(self._output / f"{number:02}_{name}.png")
        self.seconds[step] = time.monotonic() - self._began
        self._began = time.monotonic()

    def failed(self, step: str) -> None:
        """Keep a screenshot and the objects of a step that failed."""
        self._desktop.screenshot(self._output / "failed.png")
        if self.process.poll() is not None:
            return
        lines = [
            f"{one.place} | {one.about} | {one.states:#x}"
            for window in self.reader.windows()
            for one in window.walk()
        ]
        (self._output / "failed.txt").write_text("\n".join((step, *lines)))

    # ---- eyes
    def items(self, *, hidden: bool = False) -> list[Item]:
        """Return all objects of all windows.

        Raises: WalkError when the program has ended
        """
        if self.process.poll() is not None:
            raise WalkError(f"the program ended with code {self.process.returncode}")
        windows = self.reader.windows(hidden=hidden)
        return [one for window in windows for one in window.walk()]

    def find(self, role: str, name: str = "", about: str = "", *states: State) -> Item | None:
        """Return the first object shown with a role whose name and description match."""
        for one in self.items():
            if not re.fullmatch(role, one.role) or not one.has(State.SHOWING, *states):
                continue
            if re.search(name, one.name) and re.search(about, one.about):
                return one
        return None

    def until(
        self, look: Callable[[], Answer | None], what: str, patience: float = PATIENCE
    ) -> Answer:
        """Look again and again until there is an answer.

        Raises: WalkError when there is none in time, or the program has ended
        """
        over = time.monotonic() + patience
        while True:
            found = look()
            if found:
                return found
            if time.monotonic() > over:
                raise WalkError(f"not seen within {patience:.0f} s: {what}")
            time.sleep(_POLL)

    def see(
        self, role: str, name: str = "", about: str = "", *states: State, patience: float = PATIENCE
    ) -> Item:
        """Wait for an object; see find."""
        what = f"{role} '{name}' {about}".strip()
        return self.until(lambda: self.find(role, name, about, *states), what, patience)

    def focus_on(self, role: str, name: str = "") -> Item:
        """Wait until an object has the keyboard."""
        return self.see(role, name, "", State.FOCUSED)

    def typing(self) -> Item:
        """Wait until a text field has the keyboard; that of a palette is in no window."""

        def look() -> Item | None:
            found = self.reader.focus()
            return found if found is not None and found.role in _TEXT_FIELDS else None

        return self.until(look, "a text field with the keyboard")

    # ---- hands
    def click(self, item: Item, button: int = LEFT) -> None:
        """Click into the middle of an object."""
        left, top, width, height = self.reader.box(item)
        self.hands.click(left + width // 2, top + height // 2, button)

    def tab_to(self, role: str, name: str) -> Item:
        """Press Tab until an object has the keyboard.

        Raises: WalkError when Tab does not get there
        """
        for _ in range(_MOST_TABS):
            found = self.find(role, name, "", State.FOCUSED)
            if found is not None:
                return found
            self.hands.press("Tab")
            time.sleep(_POLL)
        raise WalkError(f"Tab does not reach {role} '{name}'")
