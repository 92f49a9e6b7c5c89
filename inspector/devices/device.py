"""Devices that programs run on besides this machine, as the user has described them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from inspector.devices.errors import DeviceError
from inspector.devices.runner import DEFAULT_RUNNER, check_runner
from inspector.files.user_folder import user_folder
from inspector.units import TICK_UNITS
from schema.objects.atomic_file import write_atomically
from schema.objects.codec import from_json, read_json, to_json

SSH, ADB, COMMAND = "ssh", "adb", "command"
KINDS = (SSH, ADB, COMMAND)
_FOLDERS = {ADB: "/data/local/tmp/etscope"}
_FOLDER = ".cache/etscope"  # below the login folder
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")
_ADDRESS = re.compile(r"[A-Za-z0-9_\[][A-Za-z0-9_.:@/%\[\]-]*")
_LARGEST = 1 << 16  # bytes of a description


@dataclass(frozen=True, slots=True)
class Device:
    """How a device is reached, and what runs programs there.

    Attributes:
        name: chosen by the user
        transport: ssh, adb or command
        address: host (or alias) of ssh, serial of adb, or the template of a command
        runner: template of the command that runs a program; see ``inspector.devices.runner``
        folder: of our files there; relative to the login folder
        clock: unit of the ticks of its ETDumps
        config: configuration file of ssh; empty for that of the user
        timeout: seconds that one command may take
    """

    name: str
    transport: str
    address: str
    runner: str = DEFAULT_RUNNER
    folder: str = ""
    clock: str = "ns"
    config: str = ""
    timeout: float = 600.0

    @property
    def place(self) -> str:
        """Return the folder of our files on the device."""
        return self.folder or _FOLDERS.get(self.transport, _FOLDER)

    def describe(self) -> str:
        """Return a short description, as in ``pi (ssh pi.local)``."""
        how = "a command" if self.transport == COMMAND else f"{self.transport} {self.address}"
        return f"{self.name} ({how})"


def check_device(device: Device) -> Device:
    """Return a device whose fields are usable.

    Raises: DeviceError naming the first that is not
    """
    if not _NAME.fullmatch(device.name):
        words = "expected letters, digits, '.', '_' and '-', not beginning with a sign"
        raise DeviceError(f"{device.name!r} is not a name of a device: {words}", "usage")
    if device.transport not in KINDS:
        there = ", ".join(KINDS)
        raise DeviceError(f"unknown transport {device.transport!r}; available: {there}", "usage")
    if device.transport == COMMAND and "{command}" not in device.address:
        raise DeviceError(
            "the template of a command needs {command}, what the device runs", "usage"
        )
    if device.transport != COMMAND and not _ADDRESS.fullmatch(device.address):
        raise DeviceError(f"{device.address!r} is not an address of {device.transport}", "usage")
    if device.clock not in TICK_UNITS:
        words = f"unknown unit {device.clock!r}; use one of {', '.join(TICK_UNITS)}"
        raise DeviceError(words, "usage")
    if "\0" in device.folder or "\n" in device.folder or device.place.strip("/. ") == "":
        raise DeviceError(f"{device.folder!r} is not a folder for files on a device", "usage")
    if not 0 < device.timeout < 1e6:
        raise DeviceError(f"expected seconds of a timeout, found {device.timeout}", "usage")
    check_runner(device.runner)
    return device


def devices_folder() -> Path:
    """Return the folder of the descriptions."""
    return user_folder() / "devices"


def known_devices() -> dict[str, Device]:
    """Return the devices by name; files that cannot be read are left out."""
    found: dict[str, Device] = {}
    for path in sorted(devices_folder().glob("*.json")):
        try:
            found[path.stem] = device_named(path.stem)
        except DeviceError:
            continue
    return found


def device_named(name: str) -> Device:
    """Return a device.

    Raises: DeviceError for an unknown name, or a description that cannot be read
    """
    path = _path(name)
    try:
        content = read_json(path, "the description of a device", _LARGEST)
        return check_device(replace(from_json(content, Device, str(path)), name=name))
    except FileNotFoundError:
        there = ", ".join(one.stem for one in sorted(devices_folder().glob("*.json"))) or "none"
        words = f"unknown device {name!r}; available: {there}; etscope device add NAME adds one"
        raise DeviceError(words, "usage") from None
    except (OSError, ValueError) as error:
        raise DeviceError(f"{path}: {error}", "unreadable") from error


def store_device(device: Device, *, new: bool) -> Path:
    """Write the description of a device; return its file.

    Args:
        device: to store
        new: whether a device of this name is an error

    Raises: DeviceError
    """
    path = _path(check_device(device).name)
    if new and path.exists():
        words = f"there is a device {device.name!r}; etscope device edit {device.name} changes it"
        raise DeviceError(words, "usage")
    text = json.dumps(to_json(device), indent=1, ensure_ascii=False) + "\n"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, lambda stream: stream.write(text.encode()))
    except OSError as error:
        raise DeviceError(f"{path}: {error.strerror}") from error
    return path


def forget_device(name: str) -> None:
    """Remove the description of a device.

    Raises: DeviceError
    """
    path = _path(name)
    try:
        path.unlink()
    except FileNotFoundError:
        device_named(name)
    except OSError as error:
        raise DeviceError(f"{path}: {error.strerror}") from error
    path.with_suffix(".lock").unlink(missing_ok=True)


def changed(device: Device, changes: Mapping[str, object]) -> Device:
    """Return a device with other fields; None keeps one."""
    known = {name: value for name, value in changes.items() if value is not None}
    return check_device(replace(device, **known)) if known else device


def _path(name: str) -> Path:
    if not _NAME.fullmatch(name):
        raise DeviceError(f"{name!r} is not a name of a device", "usage")
    return devices_folder() / f"{name}.json"
