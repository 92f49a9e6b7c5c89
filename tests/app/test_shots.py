"""Pictures of the real window, and the demo without a display."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QPixmap

from devtools_app.screenshots.first_minute import strip, write_first_minute
from devtools_app.screenshots.window import NotReadyError
from devtools_app.views import VIEWS

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
SESSION = ROOT / "tests/data/corpus/v1.5.1/convnet_xnnpack"
PNG = b"\x89PNG\r\n\x1a\n"


RAN = {"inputs.pt", "outputs.pt", "run.etdp", "run.json"}


def run(*arguments: str, timeout: float = 120) -> subprocess.CompletedProcess[str]:
    keep = ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")
    environment = {name: value for name, value in os.environ.items() if name not in keep}
    return subprocess.run(
        [sys.executable, "-m", *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env=environment,
        timeout=timeout,
    )


@pytest.mark.gui
def test_screenshot_of_one_view_is_a_picture(tmp_path: Path) -> None:
    target = tmp_path / "graph.png"
    arguments = ("screenshot", str(SESSION), "-o", str(target), "--view", "graph", "--scale", "2")
    done = run("devtools_app", *arguments, "--size", "900x600", "--theme", "dark")
    assert done.returncode == 0, done.stderr
    data = target.read_bytes()
    assert data.startswith(PNG)
    size = (int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big"))
    assert size[0] >= 1800
    assert size[1] >= 1200
    assert run("devtools_app", *arguments).returncode == 2
    assert target.read_bytes() == data


@pytest.mark.gui
def test_screenshot_of_two_folders_shows_their_comparison(tmp_path: Path) -> None:
    other = SESSION.with_name("convnet_portable")
    pictures = []
    for name, folders in (("two", (SESSION, other)), ("one", (SESSION,))):
        target = tmp_path / f"{name}.png"
        files = (*map(str, folders), "-o", str(target), "--view", "compare")
        done = run("devtools_app", "screenshot", *files)
        assert (done.returncode, done.stderr) == (0, "")
        pictures.append(target.read_bytes())
    assert len(pictures[0]) > 1.15 * len(pictures[1])  # alone there is nothing to compare with


@pytest.mark.gui
def test_screenshots_of_all_views_are_one_of_each_and_quiet(tmp_path: Path) -> None:
    folder = tmp_path / "pictures"
    arguments = ("devtools_app", "screenshot", str(SESSION), "-o", str(folder), "--view", "all")
    done = run(*arguments)
    assert (done.returncode, done.stderr) == (0, "")
    pictures = {path.stem: path.read_bytes() for path in folder.iterdir()}
    assert set(pictures) == {spec.name for spec in VIEWS}
    assert len(set(pictures.values())) >= len(VIEWS) - 5  # panels that are in front anyway
    again = run(*arguments)
    assert again.returncode == 2
    assert "exists; --force replaces it" in again.stderr


@pytest.mark.gui
@pytest.mark.parametrize(
    ("files", "options", "code"),
    [
        (["missing.pte"], [], 3),
        ([str(ROOT / "LICENSE")], [], 3),
        ([str(SESSION)], ["--size", "big"], 2),
        ([str(SESSION)], ["--view", "nothing"], 2),
    ],
)
def test_screenshot_that_cannot_be_taken_says_why(
    files: list[str], options: list[str], code: int, tmp_path: Path
) -> None:
    target = tmp_path / "x.png"
    done = run("devtools_app", "screenshot", *files, "-o", str(target), "--view", "graph", *options)
    assert done.returncode == code
    assert "Traceback" not in done.stderr
    assert done.stderr.strip()
    assert not target.exists()


@pytest.mark.gui
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_demo_without_a_display_writes_pictures_and_the_summary(tmp_path: Path) -> None:
    out = str(tmp_path / "out")
    done = run("devtools_app.demo", "--built-in-only", "--output", out, timeout=850)
    assert done.returncode == 0, done.stderr
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert {"summary.txt", "graph_light.png", "graph_dark.png", "memory_light.png"} <= names
    assert "All 5 files belong together" in (tmp_path / "out/summary.txt").read_text()
    assert str(tmp_path / "out") in done.stdout
    assert "instead" not in done.stdout  # of what was to be compiled and run
    for folder in ("keyword_spotter", "keyword_spotter_changed"):
        made = {path.name for path in (tmp_path / "out" / folder / "run").iterdir()}
        assert made == {*RAN, "values.etdp", "values.debug"}
    comparison = (tmp_path / "out/comparison.txt").read_text()
    assert "vetoed by the user: aten.mul.Tensor" in comparison
    assert "latency, measured here" in comparison
    assert "<html" in (tmp_path / "out/comparison.html").read_text()


def test_first_minute_is_a_strip_of_numbered_stills(theme, qtbot, tmp_path) -> None:
    stills = [(QPixmap(144, 90), f"step {number}") for number in range(3)]
    for still, _caption in stills:
        still.fill(Qt.GlobalColor.red)
    image = strip(stills, theme).toImage()
    wide, high = image.width(), image.height()
    reds = [
        image.pixelColor(wide * x // 4, high * y // 4).red() for x, y in ((1, 1), (3, 1), (1, 3))
    ]
    assert reds == [255] * 3
    assert image.pixelColor(wide * 3 // 4, high * 3 // 4).name() == theme.palette.surface
    with pytest.raises(NotReadyError, match="overview_light"):
        write_first_minute(tmp_path)
