"""Environments of vendors' packages: created by pip from its own settings, listed, removed."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

import pytest

from inspector.toolchain import environments as made
from inspector.toolchain.backend_cards import backend_card
from inspector.toolchain.environments import EnvironmentCreationError, create, install, remove
from schema.vendors.environments import (
    FACTS,
    environment,
    environments,
    environments_folder,
    python_in,
    python_with,
)
from schema.vendors.table import vendor_called
from tests.inspector.cli_runs import run

WHEEL = "toyvendor-1.5-py3-none-any.whl"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give pip an index of one wheel, and environments a folder of their own."""
    index = tmp_path / "index"
    index.mkdir()
    with zipfile.ZipFile(index / WHEEL, "w") as wheel:
        wheel.writestr("toyvendor/__init__.py", "")
        about = "toyvendor-1.5.dist-info/"
        wheel.writestr(f"{about}METADATA", "Metadata-Version: 2.1\nName: toyvendor\nVersion: 1.5\n")
        wheel.writestr(
            f"{about}WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{about}RECORD", "")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    return tmp_path


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "darwin", reason="the folder does not follow a variable")
def test_environment_is_created_listed_used_and_removed() -> None:
    said: list[str] = []
    found = create("toy", ["toyvendor"], said.append)
    assert found.packages == ("toyvendor==1.5",)
    assert any(one.startswith("Successfully installed toyvendor-1.5") for one in said)
    assert environment("toy") == found
    assert python_with("toyvendor") == str(found.python)
    assert python_with("nonesuch") == ""
    with pytest.raises(EnvironmentCreationError, match="pip failed: Could not find a version"):
        create("toy", ["nonesuch==3"], said.append)
    assert environments() == ()
    assert not found.folder.exists()
    create("toy", ["toyvendor"], said.append)
    assert remove("toy").name == "toy"
    assert not found.folder.exists()
    with pytest.raises(EnvironmentCreationError, match="no environment 'toy'; available: none"):
        remove("toy")


@pytest.mark.slow
def test_cancelled_environment_leaves_nothing() -> None:
    with pytest.raises(EnvironmentCreationError, match="cancelled"):
        create("toy", ["toyvendor"], lambda _text: None, lambda: True)
    assert not (environments_folder() / "toy").exists()


def test_environment_whose_creation_was_killed_is_listed_and_removed() -> None:
    folder = environments_folder() / "vgf"
    (folder / "bin").mkdir(parents=True)
    assert environments() == ()
    assert "vgf cannot be used, its installation has not ended" in run("backends", "list").out
    assert run("backends", "remove", "vgf").code == 0
    assert not folder.exists()


def test_vendor_that_is_unknown_or_not_in_the_index_is_one_sentence() -> None:
    with pytest.raises(EnvironmentCreationError, match="nonesuch"):
        install("nonesuch", lambda _text: None)
    with pytest.raises(
        EnvironmentCreationError, match="cannot be installed from the package index"
    ):
        install("qnn", lambda _text: None)
    asked = made.requirements_of(made.vendor_called("openvino") or pytest.fail("unknown"))
    assert asked[0].startswith("torch")
    assert "nncf==3.1.0" in asked


def test_verb_lists_what_is_there() -> None:
    result = run("backends", "list")
    assert result.code == 0
    assert result.out.startswith("0 environments in ")
    assert run("backends", "remove", "nix").code == 2
    assert run("backends", "install").code == 2


def test_card_of_a_backend_names_the_environment_that_has_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(type(vendor_called("openvino")), "missing", lambda *_a: "it is missing")
    assert backend_card("openvino").state == "it is missing"
    python = python_in(environments_folder() / "openvino")
    python.parent.mkdir(parents=True)
    python.touch()
    facts = environments_folder() / "openvino" / FACTS
    facts.write_text('{"packages": ["openvino==2025.4.1"], "created": "2026-11-24"}')
    assert backend_card("openvino").state == "available, in the environment openvino"
