"""The set-up script: what it does on machines which this one is not."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from tests.architecture.tree import ROOT


@pytest.fixture
def setup() -> ModuleType:
    spec = importlib.util.spec_from_file_location("etscope_setup", ROOT / ".ci" / "setup.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("user", [0, 1000])
def test_apt_install_without_apt_or_root_says_the_exact_command(
    setup: ModuleType, monkeypatch: pytest.MonkeyPatch, user: int
) -> None:
    monkeypatch.setattr(setup.os, "geteuid", lambda: user, raising=False)
    monkeypatch.setattr(setup.shutil, "which", lambda _name: None if user == 0 else "/apt-get")
    with pytest.raises(setup.SetupError, match="libegl1 libgl1") as caught:
        setup.apt_install(("libegl1", "libgl1"), "Qt does not find libEGL.so.1")
    assert "sudo apt-get install --no-install-recommends libegl1 libgl1" in str(caught.value)


@pytest.mark.parametrize("version", [(3, 10, 4), (3, 14, 0)])
def test_check_interpreter_of_an_unpinned_version_is_refused(
    setup: ModuleType, monkeypatch: pytest.MonkeyPatch, version: tuple[int, int, int]
) -> None:
    monkeypatch.setattr(setup.sys, "version_info", version)
    with pytest.raises(setup.SetupError, match=r"Python 3\.11 to 3\.13"):
        setup.check_interpreter()


@pytest.mark.parametrize("stamp", [None, "", "not json", "[]"])
def test_read_stamp_absent_or_broken_means_install(
    setup: ModuleType, tmp_path: Path, stamp: str | None
) -> None:
    python = setup.interpreter(tmp_path)
    python.parent.mkdir(parents=True)
    python.touch()
    if stamp is not None:
        (tmp_path / setup.STAMP).write_text(stamp, encoding="utf-8")
    assert setup.read_stamp(tmp_path) == {}


def test_prepare_current_environment_installs_nothing_and_keeps_the_other_extras(
    setup: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed: list[frozenset[str]] = []
    python = setup.interpreter(tmp_path)
    python.parent.mkdir(parents=True)
    python.touch()
    monkeypatch.setattr(setup, "install", lambda _venv, extras: installed.append(extras))
    monkeypatch.setattr(setup, "install_system_libraries", lambda _venv: None)
    setup.prepare(tmp_path, frozenset({"interop", "dev"}))
    setup.prepare(tmp_path, frozenset({"interop"}))
    assert installed == [{"interop", "dev"}]
    monkeypatch.setattr(setup, "environment_key", lambda: "changed")
    setup.prepare(tmp_path, frozenset({"interop"}))
    assert installed[1] == {"interop", "dev"}


def test_constraints_pin_every_requirement_of_the_project() -> None:
    text = (ROOT / ".ci" / "constraints.txt").read_text("utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert all(line.count("==") == 1 for line in lines)
    pinned = {line.split("==")[0].lower().replace("_", "-") for line in lines}
    wanted = {"flatbuffers", "networkx", "numpy", "pandas", "pyside6-essentials", "pyqtgraph"}
    assert wanted | {"torch", "executorch", "pytest", "ruff", "pyright"} <= pinned
    # A local version such as torch's +cpu is what one machine had, not what pip can find.
    assert not [line for line in lines if "+" in line]


def test_set_up_goes_on_without_the_programs_of_device_tests(
    setup: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = tmp_path / "policy-rc.d"
    asked: list[tuple[str, ...]] = []

    def refuse(packages: tuple[str, ...], why: str) -> None:
        asked.append(packages)
        assert policy.read_text() == "#!/bin/sh\nexit 101\n"
        raise setup.SetupError(why)

    only_apt = {"apt-get": "/usr/bin/apt-get"}
    monkeypatch.setattr(setup, "POLICY", policy)
    monkeypatch.setattr(setup, "apt_install", refuse)
    monkeypatch.setattr(setup.shutil, "which", lambda name, path=None: only_apt.get(name))
    monkeypatch.setattr(setup.os, "geteuid", lambda: 0)
    setup.install_device_clients()
    assert asked == [("openssh-client", "openssh-server", "adb")]
    assert not policy.exists()
