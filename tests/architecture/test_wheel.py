"""The wheel: it builds, holds the five packages and their data, installs clean, and runs."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

import schema.version
from tests.architecture.tree import PACKAGES, ROOT, tracked_files

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    _run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder), cwd=ROOT)
    return next(folder.glob("*.whl"))


def test_wheel_holds_the_packages_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.split("/")[0] for name in names}
    assert tops == {*PACKAGES, f"etscope-{schema.version.__version__}.dist-info"}
    assert not [name for name in names if "__pycache__" in name]
    suffixes = {Path(name).suffix for name in names}
    assert suffixes.isdisjoint({".so", ".pyd", ".dll", ".dylib"})  # pure Python


def test_wheel_holds_every_file_of_the_packages(wheel: Path) -> None:
    held = set(zipfile.ZipFile(wheel).namelist())
    listed = {path.relative_to(ROOT) for path in tracked_files()}
    assert {path.as_posix() for path in listed if path.parts[0] in PACKAGES} <= held


def test_wheel_in_a_clean_environment_etscope_runs(wheel: Path, tmp_path: Path) -> None:
    home = tmp_path / "venv"
    venv.create(home, with_pip=True)
    scripts = home / ("Scripts" if sys.platform == "win32" else "bin")
    _run(str(scripts / "python"), "-m", "pip", "install", "--no-deps", "--quiet", str(wheel))
    # The requirements of this environment; its own .pth files, so our sources, stay unread.
    site = next(home.glob("**/site-packages"))
    (site / "requirements.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
    place = _run(str(scripts / "python"), "-c", "import schema; print(schema.__file__)")
    assert place.startswith(str(home))
    printed = _run(str(scripts / "etscope"), "--version", cwd=tmp_path)
    assert printed.split() == ["etscope", schema.version.__version__]


def _run(*command: str, cwd: Path | None = None) -> str:
    finished = subprocess.run(
        command, cwd=cwd or Path.home(), capture_output=True, text=True, check=False
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
    return finished.stdout
