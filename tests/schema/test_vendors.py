"""The table of vendors: names, needs, and how what is missing is had."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from schema.backends import BACKENDS
from schema.vendors.needs import VendorNeed, has_module
from schema.vendors.table import VENDORS, unknown_vendor, vendor_called, vendors_of


def test_every_name_means_one_vendor_however_it_is_written() -> None:
    names = [name for one in VENDORS for name in one.names]
    assert len({name.lower() for name in names}) == len(names)
    for one in VENDORS:
        for name in one.names:
            assert vendor_called(name) is vendor_called(name.upper()) is one


def test_every_line_names_a_known_backend_and_how_to_get_it() -> None:
    assert {one.backend for one in VENDORS} - {""} <= set(BACKENDS)
    assert [one.alias for one in VENDORS if not one.install] == []
    assert [one.alias for one in VENDORS if bool(one.place) != bool(one.make)] == []
    assert len(vendors_of("VulkanBackend")) == 2
    assert vendors_of("") == ()


def test_name_that_is_close_is_offered() -> None:
    assert "did you mean openvino?" in unknown_vendor("openvin")
    assert "available: openvino, coreml" in unknown_vendor("zzzz")


@pytest.mark.parametrize("end", ["/__init__.py", ".py", ".cpython-311-x86_64-linux-gnu.so"])
def test_module_is_found_by_its_files_and_not_imported(end: str, tmp_path: Path) -> None:
    file = tmp_path / f"outer/inner{end}"
    file.parent.mkdir(parents=True)
    file.write_text("raise SystemExit", "utf-8")
    assert has_module("outer/inner", [str(tmp_path)])
    assert not has_module("outer/in", [str(tmp_path)])
    assert not VendorNeed("outer/other").is_met([str(tmp_path)])
    assert "outer" not in sys.modules


def test_what_is_missing_is_one_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert VendorNeed("a/b").sentence == "the module a.b is not installed"
    assert VendorNeed(command="x").sentence == "the program x is not on the path"
    assert VendorNeed(platform="darwin").sentence == "it needs macOS"
    need = VendorNeed(variable="ETSCOPE_TEST_SDK")
    assert not need.is_met()
    monkeypatch.setenv("ETSCOPE_TEST_SDK", str(tmp_path))
    assert need.is_met()


def test_program_beside_the_interpreter_needs_no_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert VendorNeed(command=Path(sys.executable).name).is_met()
    assert not VendorNeed(command="no-such-program").is_met()
