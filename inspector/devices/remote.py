"""Our folder on a device: files by content, one folder for a run, and the runs themselves."""

from __future__ import annotations

import getpass
import hashlib
import platform
import secrets
import shlex
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from inspector.devices.device import Device
from inspector.devices.errors import DeviceError, in_words, runner_failure
from inspector.devices.lock import locked
from inspector.devices.runner import runner_words, shell_command
from inspector.devices.transport import Transport, transport_of

_SHORT = 60.0  # seconds for what is done at once
_PRINTED = 4 << 20  # bytes that a runner may print
_PEAK = "peak"
_BUSY_TURNS = 2_000  # about a second
_PIECE = 1 << 20
_LARGEST = 8 << 30  # bytes of a file that comes back
_FACTS = {
    "system": "uname -srm",
    "model": "getprop ro.product.model 2>/dev/null || tr -d '\\000' < /proc/device-tree/model",
    "cores": "nproc --all",
    "governor": "cat /sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
    "frequency_khz": "cat /sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq",
    "load": "cut -d' ' -f1 /proc/loadavg",
}


@dataclass(frozen=True, slots=True)
class Finished:
    """A pass that a runner has finished.

    Attributes:
        output: what it printed
        sizes: bytes of each file in the folder of the run, by name
        peak_bytes: the largest resident size of the runner, None where it was not watched or the
            system there does not tell
    """

    output: str
    sizes: dict[str, int]
    peak_bytes: int | None = None


@dataclass
class RemoteFolder:
    """The folder of a device while its lock is held.

    Attributes:
        device: the device
        transport: to it
        facts: description of the remote system
        pushed: files that were not there yet
    """

    device: Device
    transport: Transport
    facts: dict[str, str] = field(default_factory=dict[str, str])
    pushed: list[str] = field(default_factory=list[str])
    _files: set[str] = field(default_factory=set[str])

    @property
    def _home(self) -> str:
        return shlex.quote(self.device.place)

    @property
    def _run(self) -> str:
        """Return the name of the folder of a run: one for each user of each machine."""
        who = f"{getpass.getuser()}@{platform.node()}"
        return f"run-{hashlib.sha256(who.encode()).hexdigest()[:12]}"

    def open(self) -> None:
        """Create the folders, empty that of the run, and list existing files.

        Raises: DeviceError
        """
        mark = secrets.token_hex(8)
        lines = [f"mkdir -p {self._home}/files && cd {self._home} || exit 1"]
        lines.append(f"rm -rf {self._run} && mkdir {self._run} || exit 1")
        lines.append(f"for f in files/*; do echo {mark} file $f; done")
        for name, command in _FACTS.items():
            lines.append(f"echo {mark} {name} $( ({command}) 2>/dev/null)")
        for line in self._script("\n".join(lines), "").splitlines():
            start, _, rest = line.partition(" ")
            name, _, value = rest.partition(" ")
            if start == mark and name == "file":
                self._files.add(value.removeprefix("files/"))
            elif start == mark and value.strip():
                self.facts[name] = value.strip()[:200]

    def put(self, local: Path, suffix: str = "") -> str:
        """Push a file unless its content is there; return its path for the runner.

        Raises: DeviceError; OSError for a file that cannot be read
        """
        name = _digest(local) + suffix
        if name not in self._files:
            home, part = f"{self.device.place}/files", f"{name}.part"
            self.transport.push(local, f"{home}/{part}")
            size = local.stat().st_size
            check = f'[ "$(wc -c < {part})" -eq {size} ] && mv {part} {name}'
            self._script(f"cd {self._home}/files && {check}", "a part of a file is missing there")
            self._files.add(name)
            self.pushed.append(name)
        return f"../files/{name}"

    def run(self, values: dict[str, str | None], *, watch_memory: bool = False) -> Finished:
        """Run a program; the runner is killed when the connection ends.

        Args:
            values: of the placeholders of its command
            watch_memory: whether to read its resident size while it runs, which takes a core

        Raises: DeviceError
        """
        words = runner_words(self.device.runner, values)
        mark = secrets.token_hex(8)
        script = f"""cd {self._home}/{self._run} || exit 1
exec 3<&0
{shell_command(words)} </dev/null 2>&1 3<&- & runner=$!
{{ read line <&3; kill -9 $runner; }} >/dev/null 2>&1 & watch=$!
exec 3<&-
{_meter(mark) if watch_memory else ""}
wait $runner; code=$?
kill $watch 2>/dev/null
[ -z "$meter" ] || wait $meter
for f in *; do [ -f "$f" ] && echo {mark} $(wc -c < "$f") "$f"; done
exit $code"""
        ran = self.transport.run(script, self.device.timeout, _PRINTED)
        sizes: dict[str, int] = {}
        printed: list[str] = []
        peak: int | None = None
        for line in ran.output.splitlines():
            start, _, rest = line.partition(" ")
            size, _, name = rest.strip().partition(" ")
            if (start, size) == (mark, _PEAK) and name.isdigit():
                peak = int(name) * 1024 or None
            elif start == mark and size.isdigit():
                sizes[name] = int(size)
            else:
                printed.append(line)
        output = "\n".join(printed)
        if ran.code:
            sentence = runner_failure(ran.code, words[0], self.device.name, output)
            raise self._error(sentence, output)
        return Finished(output, sizes, peak)

    def get(self, finished: Finished, name: str, local: Path) -> bool:
        """Pull a file of a run; return whether there is one.

        Raises: DeviceError, OSError
        """
        size = finished.sizes.get(name)
        if not size:
            return False
        if size > _LARGEST:
            raise self._error(f"{name} has {size:,} bytes, more than {_LARGEST:,}")
        self.transport.pull(f"{self.device.place}/{self._run}/{name}", local, size)
        return True

    def empty(self) -> None:
        """Empty the folder of the run.

        Raises: DeviceError
        """
        self._script(f"cd {self._home} && rm -rf {self._run} && mkdir {self._run}", "")

    def close(self, *, keep: bool = True) -> None:
        """Remove the folder of the run, and everything that was pushed unless it is kept.

        Raises: DeviceError
        """
        self.transport.remove(f"{self.device.place}/{self._run}")
        if not keep:
            self.transport.remove(f"{self.device.place}/files")
            self._script(f"rmdir {self._home} 2>/dev/null; true", "")

    def used_bytes(self) -> int:
        """Return the bytes of the files there; 0 without the folder.

        Raises: DeviceError
        """
        text = self._script(f"cd {self._home} 2>/dev/null && du -sk . || echo 0", "")
        size = text.split()
        return int(size[0]) * 1024 if size and size[0].isdigit() else 0

    def has_runner(self) -> bool:
        """Return whether the program of the runner is there and executable.

        Raises: DeviceError
        """
        first = shell_command(runner_words(self.device.runner, {})[:1])
        script = f"command -v {first} >/dev/null && echo yes || echo no"
        return self._script(script, "").strip() == "yes"

    def _script(self, script: str, otherwise: str) -> str:
        ran = self.transport.run(script, _SHORT, _PRINTED)
        if ran.code:
            device = self.device
            facts = {"name": device.name, "client": device.transport, "address": device.address}
            words = in_words(ran.output, folder=device.place, **facts)
            raise self._error(words if ran.output.strip() else otherwise or words, ran.output)
        return ran.output

    def _error(self, sentence: str, details: str = "") -> DeviceError:
        return DeviceError(f"{self.device.describe()}: {sentence}", details=details)


def _meter(mark: str) -> str:
    """Return lines of shell that read the peak of the runner, or of what it started, until it ends.

    The kernel keeps the peak of a process for as long as it runs. So it is read again and again,
    with nothing but the shell: a wrapper such as ``time`` is rarely there, and would outlive a
    runner that is killed. Of a run of some seconds and more it is read ten times a second.
    """
    return f"""{{ peak=0; turns=0; found=1
while [ -n "$found" ]; do
 found=; more=
 read -r more < /proc/$runner/task/$runner/children
 for pid in $runner $more; do
  while read -r name size unit; do
   case $name in VmHWM:) [ "$pid" = $runner ] && found=1
    [ "$size" -gt $peak ] && peak=$size
    break;; esac
  done < /proc/$pid/status
 done
 turns=$((turns + 1)); [ $turns -gt {_BUSY_TURNS} ] && sleep 0.1
done
echo {mark} {_PEAK} $peak; }} 2>/dev/null & meter=$!"""


def probe(device: Device, waiting: Callable[[str], object]) -> tuple[dict[str, str], bool]:
    """Connect to a device; return a description of its system, and whether its runner exists.

    Args:
        device: to try
        waiting: called with a sentence if another job uses the device

    Raises: DeviceError
    """
    remote = RemoteFolder(device, transport_of(device))
    with locked(device, waiting):
        remote.open()
        there = remote.has_runner()
        remote.close()
    return remote.facts, there


def _digest(path: Path) -> str:
    found = hashlib.sha256()
    with path.open("rb") as stream:
        while piece := stream.read(_PIECE):
            found.update(piece)
    return found.hexdigest()
