"""Create or refresh the virtual environment that the Makefile's targets use.

Run by any Python 3.11 or newer with the standard library alone:

    python3 .ci/setup.py --venv .venv --extras interop,dev

A stamp inside the environment remembers what it was made from (pyproject.toml, the constraints,
the interpreter), so a second run returns at once. torch is installed before everything else:
the stock wheel accepts a range of torch versions, and the range alone would pull another build.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CONSTRAINTS = ROOT / ".ci" / "constraints.txt"
STAMP = "etscope-stamp.json"
OLDEST, NEWEST = (3, 11), (3, 13)

# What Qt loads from the system, found in a minimal Debian 12 (Qt itself comes with the wheel).
OFFSCREEN_PACKAGES = (
    "libglib2.0-0",
    "libdbus-1-3",
    "libxkbcommon0",
    "libegl1",
    "libgl1",
    "libfontconfig1",
)
WINDOW_PACKAGES = (
    "libxkbcommon-x11-0",
    "libxcb-cursor0",
    "libxcb-icccm4",
    "libxcb-keysyms1",
    "libxcb-shape0",
)
# The client and server of tests of devices, by the program that says whether they are there.
POLICY = Path("/usr/sbin/policy-rc.d")  # whether Debian may start a server that it installs
DEVICE_PROGRAMS = {"ssh": "openssh-client", "sshd": "openssh-server", "adb": "adb"}


class SetupError(Exception):
    """Set-up cannot go on; the message tells the person what to do."""


def main(arguments: list[str] | None = None) -> int:
    """Bring the environment up to date and return the exit code."""
    parser = argparse.ArgumentParser(description="create or refresh the virtual environment")
    parser.add_argument("--venv", type=Path, default=ROOT / ".venv")
    parser.add_argument("--extras", default="interop,dev", help="comma-separated extras")
    options = parser.parse_args(arguments)
    extras = frozenset(name for name in options.extras.split(",") if name)
    try:
        prepare(options.venv.absolute(), extras)
    except SetupError as error:
        print(f"set-up: {error}", file=sys.stderr)
        return 1
    except subprocess.CalledProcessError as error:
        command = " ".join(str(part) for part in error.cmd)
        print(f"set-up: '{command}' ended with code {error.returncode}", file=sys.stderr)
        return 1
    return 0


def prepare(venv: Path, extras: frozenset[str]) -> None:
    """Make `venv` hold the project with `extras`, then see that Qt finds its libraries."""
    key = environment_key()
    stamp = read_stamp(venv)
    known = frozenset(stamp.get("extras", ()))
    if stamp.get("key") != key or not extras <= known:
        # A stale environment keeps the extras that it had: make demo must not undo make test.
        install(venv, extras | known)
        if "dev" in extras:
            install_device_clients()
        stamp = {"key": key, "extras": sorted(extras | known)}
        (venv / STAMP).write_text(json.dumps(stamp), encoding="utf-8")
    install_system_libraries(venv)


def environment_key() -> str:
    """Return a digest of everything that decides what the environment contains."""
    digest = hashlib.sha256(f"{sys.version_info[:3]} {ROOT}".encode())
    for path in (ROOT / "pyproject.toml", CONSTRAINTS, Path(__file__)):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def read_stamp(venv: Path) -> dict[str, object]:
    """Return what the environment was made from; empty when absent, broken or half made."""
    if not interpreter(venv).exists():
        return {}
    try:
        stamp = json.loads((venv / STAMP).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return stamp if isinstance(stamp, dict) else {}


def interpreter(venv: Path) -> Path:
    """Return the path of the environment's Python."""
    return venv / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def install(venv: Path, extras: frozenset[str]) -> None:
    """Create the environment if need be and install the pinned packages into it."""
    check_interpreter()
    if not interpreter(venv).exists():
        check_ensurepip()
        print(f"set-up: creating {venv.name}", flush=True)
        subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
    print("set-up: installing packages (a few minutes the first time)", flush=True)
    pip_install(venv, "torch")
    pip_install(venv, "hatchling", "editables")
    target = f"{ROOT}[{','.join(sorted(extras))}]"
    pip_install(venv, "--no-build-isolation", "--editable", target)


def check_interpreter() -> None:
    """Refuse an interpreter for which the pinned packages have no wheels."""
    if not OLDEST <= sys.version_info[:2] <= NEWEST:
        found = ".".join(str(part) for part in sys.version_info[:3])
        raise SetupError(
            f"the pinned packages need Python {OLDEST[0]}.{OLDEST[1]} to {NEWEST[0]}.{NEWEST[1]}, "
            f"this is {found}; name another one with: make PYTHON=python3.11"
        )


def check_ensurepip() -> None:
    """See that `python -m venv` can work; Debian ships that part in a package of its own."""
    if importlib.util.find_spec("ensurepip") is not None:
        return
    package = f"python{sys.version_info[0]}.{sys.version_info[1]}-venv"
    apt_install((package,), "python -m venv needs ensurepip")
    importlib.invalidate_caches()


def pip_install(venv: Path, *arguments: str) -> None:
    """Run pip inside the environment under the project's constraints."""
    command = [str(interpreter(venv)), "-m", "pip", "install", "-qq"]
    command += ["--disable-pip-version-check", "--constraint", str(CONSTRAINTS), *arguments]
    subprocess.run(command, check=True)


def install_system_libraries(venv: Path) -> None:
    """Install the libraries that Qt asks of a Debian-like system, when some are missing."""
    if not sys.platform.startswith("linux") or shutil.which("ldd") is None:
        return
    window = bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
    missing = missing_libraries(venv, window)
    if not missing:
        return
    packages = OFFSCREEN_PACKAGES + (WINDOW_PACKAGES if window else ())
    apt_install(packages, f"Qt does not find {', '.join(sorted(missing))}")


def install_device_clients() -> None:
    """Install what tests of devices talk to, where that is possible; without it they are skipped.

    Debian starts a server when it installs one, unless policy-rc.d forbids it.
    """
    missing = [
        package
        for program, package in DEVICE_PROGRAMS.items()
        if shutil.which(program, path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin") is None
    ]
    apt = shutil.which("apt-get")
    if not missing or apt is None or not hasattr(os, "geteuid") or os.geteuid() != 0:
        return
    own = not POLICY.exists()
    try:
        if own:
            POLICY.write_text("#!/bin/sh\nexit 101\n", encoding="ascii")
            POLICY.chmod(0o755)
        apt_install(tuple(missing), "tests of devices use them")
    except (SetupError, OSError) as error:
        print(f"set-up: tests of devices are skipped: {error}", flush=True)
    finally:
        if own:
            POLICY.unlink(missing_ok=True)
    systemctl = shutil.which("systemctl")
    if "openssh-server" in missing and systemctl is not None:
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        subprocess.run([systemctl, "disable", "--now", "ssh"], check=False, **quiet)


def missing_libraries(venv: Path, window: bool) -> set[str]:
    """Return the shared libraries that Qt links and the system does not have."""
    found = list(venv.glob("lib/python*/site-packages/PySide6/Qt/lib/libQt6Widgets.so.6"))
    plugins = ("libqoffscreen.so", "libqxcb.so") if window else ("libqoffscreen.so",)
    for name in plugins:
        found += venv.glob(f"lib/python*/site-packages/PySide6/Qt/plugins/platforms/{name}")
    missing: set[str] = set()
    for library in found:
        listing = subprocess.run(
            ["ldd", str(library)], capture_output=True, text=True, check=False
        ).stdout
        missing |= {line.split()[0] for line in listing.splitlines() if "not found" in line}
    return missing


def apt_install(packages: tuple[str, ...], why: str) -> None:
    """Install Debian packages as root, else say the exact command."""
    names = " ".join(packages)
    command = f"apt-get install --no-install-recommends {names}"
    apt = shutil.which("apt-get")
    root = hasattr(os, "geteuid") and os.geteuid() == 0
    if apt is None or not root:
        raise SetupError(f"{why}. Run this, then the same make target again:\n  sudo {command}")
    print(f"set-up: {why}; installing {names}", flush=True)
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    subprocess.run([apt, "update", "-qq"], check=False, env=environment)
    full = [apt, "install", "-y", "-qq", "--no-install-recommends", *packages]
    outcome = subprocess.run(full, check=False, env=environment, stdout=subprocess.DEVNULL)
    if outcome.returncode:
        raise SetupError(f"{why}, and this did not work:\n  {command}")


if __name__ == "__main__":
    sys.exit(main())
