"""device: machines and phones that programs run on, besides this one."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from dataclasses import asdict, replace
from typing import Any

from inspector.cli.answer import FAILED, UNREADABLE, USAGE, Answer, CommandError, shown
from inspector.cli.job_runs import positive
from inspector.cli.options import add_output
from inspector.devices.device import (
    ADB,
    COMMAND,
    SSH,
    Device,
    changed,
    check_device,
    device_named,
    forget_device,
    known_devices,
    store_device,
)
from inspector.devices.errors import DeviceError
from inspector.devices.lock import locked
from inspector.devices.remote import RemoteFolder, probe
from inspector.devices.transport import transport_of
from inspector.tables.devices import devices_table
from inspector.units import TICK_UNITS
from schema.errors import Issue, Severity

_CODES = {"usage": USAGE, "unreadable": UNREADABLE}


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument("action", choices=_ACTIONS, help="what to do")
    parser.add_argument("name", nargs="?", default="", metavar="NAME", help="of the device")
    how = parser.add_mutually_exclusive_group()
    how.add_argument(f"--{SSH}", metavar="HOST", help="address or alias for the OpenSSH client")
    how.add_argument(f"--{ADB}", metavar="SERIAL", help="serial, or HOST:PORT, for the adb client")
    how.add_argument(
        f"--{COMMAND}",
        dest="template",
        metavar="TEMPLATE",
        help="a command that runs {command} in a shell there: docker exec -i box sh -c {command}",
    )
    parser.add_argument(
        "--runner",
        metavar="TEMPLATE",
        help="the command that runs a program; default: that of executor_runner",
    )
    parser.add_argument("--folder", metavar="PATH", help="for our files there")
    parser.add_argument("--clock", choices=TICK_UNITS, help="unit of ETDump ticks; default: ns")
    parser.add_argument("--ssh-config", metavar="FILE", help="instead of the user's")
    parser.add_argument(
        "--command-timeout", type=positive, metavar="SECONDS", help="of one pass; default: 600"
    )
    add_output(parser)


def run(options: Namespace) -> Answer:
    """Do the action.

    Raises: CommandError
    """
    if not options.name and options.action != "list":
        raise CommandError(f"which device? etscope device {options.action} NAME", USAGE)
    try:
        return _ACTIONS[options.action](options)
    except DeviceError as error:
        raise CommandError(str(error), _CODES.get(error.blame, FAILED)) from error


def check_known(name: str) -> None:
    """Raise CommandError for an unknown device."""
    try:
        device_named(name)
    except DeviceError as error:
        raise CommandError(str(error), _CODES.get(error.blame, FAILED)) from error


def _add(options: Namespace) -> Answer:
    found = _address(options)
    if not found:
        raise CommandError("how is it reached? --ssh HOST, --adb SERIAL or --command TEMPLATE")
    device = check_device(_edited(options, Device(options.name, **found)))
    path = store_device(device, new=True)
    return _answer([device], f"{path} is written; etscope device test {device.name} tries it")


def _edit(options: Namespace) -> Answer:
    device = _edited(options, replace(device_named(options.name), **_address(options)))
    path = store_device(device, new=False)
    return _answer([device], f"{path} is written")


def _show(options: Namespace) -> Answer:
    return _answer([device_named(options.name)])


def _list(_options: Namespace) -> Answer:
    found = list(known_devices().values())
    return _answer(found, *(() if found else ("no devices; etscope device add NAME adds one",)))


def _remove(options: Namespace) -> Answer:
    forget_device(options.name)
    return _answer([], f"{options.name} is forgotten; what was pushed to it is still there")


def _clean(options: Namespace) -> Answer:
    device = device_named(options.name)
    remote = RemoteFolder(device, transport_of(device))
    with locked(device, _waiting):
        size = remote.used_bytes()
        remote.close(keep=False)
    return _answer([device], f"{device.name}: {size:,} bytes removed", freed_bytes=size)


def _test(options: Namespace) -> Answer:
    device = device_named(options.name)
    facts, there = probe(device, _waiting)
    lines = [f"{device.describe()}: reached, {device.place} is writable"]
    lines += [f"{name.replace('_', ' ')}: {value}" for name, value in facts.items()]
    answer = _answer([device], *lines, facts=facts, runner=there)
    if there:
        return answer
    words = "the runner is not there, or is not executable: etscope device edit"
    issue = Issue(Severity.ERROR, device.name, f"{words} {device.name} --runner")
    return replace(answer, issues=[issue], code=FAILED)


def _address(options: Namespace) -> dict[str, Any]:
    given = {SSH: options.ssh, ADB: options.adb, COMMAND: options.template}
    found = [(kind, address) for kind, address in given.items() if address is not None]
    return {"transport": found[0][0], "address": found[0][1]} if found else {}


def _edited(options: Namespace, device: Device) -> Device:
    changes = {
        "runner": options.runner,
        "folder": options.folder,
        "clock": options.clock,
        "config": options.ssh_config,
        "timeout": options.command_timeout,
    }
    return changed(device, changes)


def _waiting(sentence: str) -> None:
    import sys

    sys.stderr.write(f"{sentence}\n")


def _answer(devices: list[Device], *lines: str, **more: object) -> Answer:
    data = {"devices": [asdict(one) for one in devices], **more}
    return Answer(data, lines=lines, tables=(shown(devices_table(devices)),) if devices else ())


_ACTIONS = {
    "add": _add,
    "list": _list,
    "show": _show,
    "edit": _edit,
    "test": _test,
    "clean": _clean,
    "remove": _remove,
}
