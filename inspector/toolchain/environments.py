"""Creates and removes environments of vendors' packages, from the index of pip's settings."""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import IO

from schema.vendors.environments import (
    FACTS,
    Environment,
    environment,
    environments,
    environments_folder,
    python_in,
    unfinished,
)
from schema.vendors.table import Vendor, unknown_vendor, vendor_called

_STEPS = re.compile(r"^(Collecting|Downloading|Building|Installing collected|Successfully)\b")
_KEPT_LINES = 40
_SHOWN = 300
_POLL_SECONDS = 0.2
_GRACE_SECONDS = 5.0
_PIP_CONFIGURATION = ("pip.conf", "pip.ini")
_BASE = ("torch", "executorch")
Say = Callable[[str], None]


class EnvironmentCreationError(Exception):
    """An environment that cannot be created or removed; one sentence."""


def never() -> bool:
    """Return False: it cannot be cancelled."""
    return False


def requirements_of(vendor: Vendor) -> tuple[str, ...]:
    """Return the pip requirements of a vendor: torch and executorch as here, its packages."""
    return (*(_like_here(name) for name in _BASE), *vendor.packages)


def _like_here(name: str) -> str:
    try:
        release = importlib.metadata.version(name).partition("+")[0]
    except importlib.metadata.PackageNotFoundError:
        return name
    return f"{name}=={release}"


def install(name: str, notify: Say, stopped: Callable[[], bool] = never) -> Environment:
    """Create the environment of a vendor, replacing one that is there.

    Args:
        name: of the vendor
        notify: called with each step
        stopped: whether the user wants no more

    Raises: EnvironmentCreationError with the reason; the folder is then removed
    """
    vendor = vendor_called(name)
    if vendor is None:
        raise EnvironmentCreationError(unknown_vendor(name))
    if not vendor.packages:
        raise EnvironmentCreationError(
            f"{vendor.title} cannot be installed from the package index: {vendor.source}"
        )
    return create(vendor.alias, requirements_of(vendor), notify, stopped)


def create(
    name: str, requirements: Sequence[str], notify: Say, stopped: Callable[[], bool] = never
) -> Environment:
    """Create an environment with packages; see ``install``."""
    folder = environments_folder() / name
    try:
        shutil.rmtree(folder, ignore_errors=True)
        folder.parent.mkdir(parents=True, exist_ok=True)
        notify(f"creating {folder}")
        _run([sys.executable, "-m", "venv", str(folder)], notify, stopped)
        _keep_index(folder)
        pip = [str(python_in(folder)), "-m", "pip", "--disable-pip-version-check"]
        _run([*pip, "install", *requirements], notify, stopped)
        packages = _output([*pip, "freeze"])
        facts = {"packages": packages, "created": date.today().isoformat()}
        (folder / FACTS).write_text(json.dumps(facts, indent=1) + "\n", "utf-8")
    except BaseException as error:
        shutil.rmtree(folder, ignore_errors=True)
        if isinstance(error, OSError):
            words = f"{error.filename or folder}: {error.strerror or error}"
            raise EnvironmentCreationError(words) from error
        raise
    found = environment(name)
    if found is None:
        raise EnvironmentCreationError(f"{folder} has no interpreter")
    return found


def remove(name: str) -> Environment:
    """Remove an environment, or what a creation that was killed has left of one.

    Raises: EnvironmentCreationError for a name that none has
    """
    vendor = vendor_called(name)
    alias = vendor.alias if vendor is not None else name
    left = (Environment(one.name, one, python_in(one)) for one in unfinished() if one.name == alias)
    found = environment(alias) or next(left, None)
    if found is None:
        there = ", ".join(one.name for one in environments()) or "none"
        raise EnvironmentCreationError(f"no environment {name!r}; available: {there}")
    try:
        (found.folder / FACTS).unlink(missing_ok=True)  # from now on it is not found
        shutil.rmtree(found.folder)
    except OSError as error:
        raise EnvironmentCreationError(f"{error.filename}: {error.strerror}") from error
    return found


def _keep_index(folder: Path) -> None:
    """Give the environment the settings of pip that belong to this one."""
    for name in _PIP_CONFIGURATION:
        own = Path(sys.prefix) / name
        if own.is_file():
            shutil.copyfile(own, folder / name)


def _run(command: Sequence[str], notify: Say, stopped: Callable[[], bool]) -> None:
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=_variables(),
    )
    lines: deque[str] = deque(maxlen=_KEPT_LINES)
    assert process.stdout is not None
    reader = threading.Thread(target=_read, args=(process.stdout, lines, notify), daemon=True)
    reader.start()
    try:
        while process.poll() is None:
            if stopped():
                raise EnvironmentCreationError("cancelled; nothing was installed")
            with suppress(subprocess.TimeoutExpired):
                process.wait(_POLL_SECONDS)
    finally:
        _end(process)
        reader.join(_GRACE_SECONDS)
    if process.returncode != 0:
        raise EnvironmentCreationError(_why(command, process.returncode, lines))


def _variables() -> dict[str, str]:
    left_out = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
    return {key: value for key, value in os.environ.items() if key not in left_out}


def _read(stream: IO[bytes], lines: deque[str], notify: Say) -> None:
    with stream:
        for line in stream:
            text = line.decode("utf-8", "replace").strip()
            lines.append(text)
            if _STEPS.match(text):
                notify(text[:_SHOWN])


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(_GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _why(command: Sequence[str], code: int, lines: Sequence[str]) -> str:
    errors = [line for line in lines if line.startswith("ERROR:")] or [one for one in lines if one]
    words = errors[0].removeprefix("ERROR: ")[:_SHOWN] if errors else f"exit code {code}"
    what = "pip" if "pip" in command else "venv"
    return f"{what} failed: {words}"


def _output(command: Sequence[str]) -> list[str]:
    found = subprocess.run(
        command, capture_output=True, text=True, check=False, env=_variables(), timeout=120
    )
    return [line.strip() for line in found.stdout.splitlines() if line.strip()]
