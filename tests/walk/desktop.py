"""A desktop of its own: display, window manager, session bus and the bus of accessibility."""

from __future__ import annotations

import os
import shutil
import signal
import struct
import subprocess
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from ctypes.util import find_library
from pathlib import Path
from types import TracebackType
from typing import IO

import numpy as np
from PySide6.QtGui import QImage

# program -> the Debian package that has it
PROGRAMS = {
    "Xvfb": "xvfb",
    "openbox": "openbox",
    "xdotool": "xdotool",
    "dbus-daemon": "dbus-daemon",
    "at-spi-bus-launcher": "at-spi2-core",
}
# library that Qt's plugin for X11 loads -> the Debian package that has it
LIBRARIES = {
    "xcb-cursor": "libxcb-cursor0",
    "xcb-icccm": "libxcb-icccm4",
    "xcb-keysyms": "libxcb-keysyms1",
    "xcb-shape": "libxcb-shape0",
}
_MORE_PLACES = ("/usr/libexec", "/usr/lib/at-spi2-core", "/usr/lib/at-spi2")
_PATIENCE = 20.0  # seconds until a server answers
_XWD_HEADER = struct.Struct(">25I")  # of the file that Xvfb draws into
_NAME_BYTES, _COLOUR_BYTES = 0, 12


def find_program(name: str) -> str | None:
    """Return the path of a program, of the places in which systems keep helpers as well."""
    places = os.pathsep.join((os.environ.get("PATH", os.defpath), *_MORE_PLACES))
    return shutil.which(name, path=places)


def missing_packages() -> tuple[str, ...]:
    """Return the packages whose programs or libraries are not installed."""
    programs = (package for name, package in PROGRAMS.items() if find_program(name) is None)
    libraries = (package for name, package in LIBRARIES.items() if find_library(name) is None)
    return (*programs, *libraries)


class Desktop:
    """Starts all servers of a desktop and ends them.

    Attributes:
        environment: of the programs that run on it
        bus_address: of the session bus
    """

    def __init__(self, width: int = 1440, height: int = 900) -> None:
        self._size = (width, height)
        self._stack = ExitStack()
        self._log: IO[str] | None = None
        self.folder = Path()
        self.environment: dict[str, str] = {}
        self.bus_address = ""

    def __enter__(self) -> Desktop:
        try:
            self._start()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    def _start(self) -> None:
        self.folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="walk")))
        self._log = self._stack.enter_context((self.folder / "servers.log").open("w"))
        home, runtime = self.folder / "home", self.folder / "runtime"
        home.mkdir()
        runtime.mkdir(mode=0o700)
        kept = {key: os.environ[key] for key in ("PATH", "LANG", "TMPDIR") if key in os.environ}
        self.environment = {**kept, "HOME": str(home), "XDG_RUNTIME_DIR": str(runtime)}
        self.environment["DISPLAY"] = f":{self._start_display()}"
        self.bus_address = self._start_bus()
        self.environment["DBUS_SESSION_BUS_ADDRESS"] = self.bus_address
        self._launch("at-spi-bus-launcher", "--launch-immediately")
        self.environment["QT_LINUX_ACCESSIBILITY_ALWAYS_ON"] = "1"
        self._launch("openbox")
        self._wait_for(self._has_window_manager, "the window manager does not start")

    def _launch(self, name: str, *arguments: str, pass_fd: int = -1) -> subprocess.Popen[bytes]:
        path = find_program(name)
        if path is None:
            raise FileNotFoundError(f"{name} is not installed: package {PROGRAMS[name]}")
        process = subprocess.Popen(
            [path, *arguments],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            pass_fds=(pass_fd,) if pass_fd >= 0 else (),
        )
        self._stack.callback(end, process)
        return process

    def _start_display(self) -> int:
        width, height = self._size
        reader, writer = os.pipe()
        screen = ("-screen", "0", f"{width}x{height}x24", "-fbdir", str(self.folder))
        self._launch(
            "Xvfb",
            "-displayfd",
            str(writer),
            *screen,
            "-noreset",
            "-nolisten",
            "tcp",
            pass_fd=writer,
        )
        os.close(writer)
        with os.fdopen(reader) as answer:
            return int(answer.readline())

    def _start_bus(self) -> str:
        address = f"unix:path={self.folder / 'session-bus'}"
        self._launch("dbus-daemon", "--session", "--nofork", f"--address={address}")
        socket = self.folder / "session-bus"
        self._wait_for(socket.exists, "the session bus does not start")
        return address

    def _has_window_manager(self) -> bool:
        command = [find_program("xdotool") or "xdotool", "get_num_desktops"]
        found = subprocess.run(command, env=self.environment, capture_output=True, check=False)
        return found.returncode == 0 and found.stdout.strip().isdigit()

    def _wait_for(self, ready: Callable[[], bool], otherwise: str) -> None:
        over = time.monotonic() + _PATIENCE
        while not ready():
            if time.monotonic() > over:
                raise TimeoutError(
                    f"{otherwise}\n{(self.folder / 'servers.log').read_text()[-2000:]}"
                )
            time.sleep(0.05)

    def screenshot(self, path: Path) -> None:
        """Write what the display shows as PNG.

        Raises: OSError when the file cannot be written
        """
        data = (self.folder / "Xvfb_screen0").read_bytes()
        header = _XWD_HEADER.unpack_from(data)
        start = header[0] + header[19] * _COLOUR_BYTES
        width, height, stride = header[4], header[5], header[12]
        pixels = np.frombuffer(data, np.uint8, height * stride, start).copy()
        image = QImage(pixels.data, width, height, stride, QImage.Format.Format_RGB32)
        if not image.save(str(path)):
            raise OSError(f"{path} cannot be written")


def end(process: subprocess.Popen[bytes]) -> None:
    """End a process that was started here, by force if it does not listen."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
