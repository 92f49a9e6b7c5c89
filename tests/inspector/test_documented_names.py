"""The table of documented names: each is there, on both sides, and the page shows the table."""

from __future__ import annotations

import importlib
import importlib.util
import subprocess
import sys

import pytest

from inspector.compat.names import place_of, places
from tests.architecture.tree import ROOT
from tests.tools.names_page import PAGE, page


@pytest.mark.parametrize("home", sorted({place.module for place in places().values()}))
def test_every_name_of_a_module_is_there(home: str) -> None:
    module = importlib.import_module(home)
    names = {place.name for place in places().values() if place.module == home}
    assert {name for name in names if not hasattr(module, name)} == set()


def test_page_shows_the_table_as_it_is() -> None:
    assert PAGE.read_text("utf-8") == page(), "run python -m tests.tools.names_page"


def test_unknown_names_have_no_place() -> None:
    assert place_of("executorch.exir", "no_such_name") is None


# Releases before 1.5 call the module of the C++ bindings so; 1.5 has portable_lib alone.
OLDER = {"executorch.extension.pybindings._portable_lib"}


@pytest.mark.interop
def test_every_documented_name_exists_in_the_wheel() -> None:
    now = sorted(key for key in places() if key[0] not in OLDER)
    lines = [
        "import importlib",
        "missing = []",
        f"for module, name in {now!r}:",
        "    try:",
        "        getattr(importlib.import_module(module), name)",
        "    except (ImportError, AttributeError) as error:",
        "        package = (getattr(error, 'name', None) or 'executorch').partition('.')[0]",
        "        if package == 'executorch' or isinstance(error, AttributeError):",
        "            missing.append((module, name))",  # others ask for a package not installed here
        "print(missing)",
    ]
    found = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)], cwd=ROOT, check=True, capture_output=True
    )
    assert found.stdout.decode().splitlines()[-1] == "[]"


@pytest.mark.parametrize("package", ["runtime", "inspector", "compiler"])
def test_importing_everything_of_a_package_gives_its_documented_names(package: str) -> None:
    given: dict[str, object] = {}
    exec(f"from {package} import *", given)
    wanted = {place.name for place in places().values() if place.module == package}
    assert wanted - set(given) == set()
