"""Operators of a library from the command line: compile, run, verify, compare, make again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.architecture.tree import ROOT
from tests.inspector.cli_runs import Run, run
from tests.tools.forked import run_stock

pytestmark = pytest.mark.slow

LIBRARY = """
import torch

library = torch.library.Library("handmade", "DEF")
library.define("add_to_(Tensor(a!) x, Tensor y) -> ()")
library.define("scaled(Tensor x, float by) -> Tensor")
library.define("scaled.out(Tensor x, float by, *, Tensor(a!) out) -> Tensor(a!)")
library.define("noted(Tensor x, Tensor(a!) log) -> Tensor")
library.define("noted.out(Tensor x, Tensor(a!) log, *, Tensor(b!) out) -> Tensor(b!)")

def add_to(x, y):
    x.add_(y)

def noted(x, log):
    log.copy_(x)
    return torch.empty_like(x)  # nobody is to read it

library.impl("add_to_", add_to, "CompositeExplicitAutograd")
library.impl("scaled", lambda x, by: x * by, "CompositeExplicitAutograd")
library.impl("noted", noted, "CompositeExplicitAutograd")
"""
SOURCE = """
import operators
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)
        self.register_buffer("sum", torch.zeros(2, 4))

    def forward(self, x):
        y = self.linear(x)
        torch.ops.handmade.add_to_(y, x)
        z = torch.ops.handmade.scaled(y, 2.5)
        torch.ops.handmade.noted(z, self.sum)
        return torch.relu(y) + self.sum

class Scaled(torch.nn.Module):
    def forward(self, x):
        return torch.ops.handmade.scaled(x, 2.5) + x

def net():
    torch.manual_seed(0)
    return Net().eval(), (torch.ones(2, 4),)
"""
SAVE = """
import torch, source
module, inputs = source.net()
torch.export.save(torch.export.export(module, inputs), "net.pt2")
torch.export.save(torch.export.export(source.Scaled(), inputs), "only.pt2")
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a library, a source that imports it, its ``.pt2`` and its compile."""
    folder = tmp_path_factory.mktemp("libraries")
    (folder / "operators.py").write_text(LIBRARY, "utf-8")
    (folder / "source.py").write_text(SOURCE, "utf-8")
    run_stock(["-c", SAVE], cwd=folder)
    answer = run("compile", f"{folder}/source.py:net", "-o", folder / "built")
    assert answer.code == 0, answer.err
    return folder


def _with(folder: Path, *words: str | Path) -> Run:
    return run(*words, "--library", folder / "operators.py")


def _program(folder: Path) -> bytes:
    return (folder / "model.pte").read_bytes()


@pytest.mark.parametrize("source", ["net.pt2", "built/model.etrecord"])
def test_file_that_calls_such_operators_compiles_and_its_recipe_makes_it_again(
    source: str, made: Path, tmp_path: Path
) -> None:
    answer = _with(made, "compile", made / source, "-o", tmp_path / "a")
    assert answer.code == 0, answer.err
    assert _program(tmp_path / "a") == _program(made / "built")
    recipe = tmp_path / "a" / "recipe.json"
    assert json.loads(recipe.read_text("utf-8"))["job"]["libraries"] == [f"{made}/operators.py"]
    again = run("compile", "--recipe", recipe, "-o", tmp_path / "b")
    assert again.code == 0, again.err
    assert _program(tmp_path / "b") == _program(tmp_path / "a")
    script = run("compile", "--recipe", recipe, "--as-python").out
    (tmp_path / "script.py").write_text(script, "utf-8")
    subprocess.run([sys.executable, "-W", "ignore", "script.py"], cwd=tmp_path, check=True)
    assert _program(tmp_path) == _program(tmp_path / "a")


@pytest.mark.parametrize("source", ["net.pt2", "built/model.etrecord"])
def test_operators_that_nobody_has_registered_are_named(
    source: str, made: Path, tmp_path: Path
) -> None:
    answer = run("compile", made / source, "-o", tmp_path / "a")
    assert answer.code in (3, 4)
    assert answer.err.count("\n") == 1
    assert "handmade::add_to_, handmade::noted, handmade::scaled are not" in answer.err
    assert "--library" in answer.err
    assert list(tmp_path.iterdir()) == []


def test_program_runs_and_every_output_is_compared(made: Path, tmp_path: Path) -> None:
    refused = run("run", made / "built", "-o", tmp_path / "a")
    assert refused.code == 4
    assert "handmade::add_to_, handmade::noted.out, handmade::scaled.out" in refused.err
    assert "--library" in refused.err
    words = ("run", made / "built", "-o", tmp_path / "a", "--debug-level", "intermediate")
    answer = _with(made, *words)
    assert answer.code == 0, answer.err
    compared = _with(made, "gap", made / "built", tmp_path / "a", "--format", "json")
    assert compared.code == 0, compared.err
    rows: list[dict[str, Any]] = compared.json["data"]["rows"]
    assert [row["operator"] for row in rows if row["max_abs"] != 0] == ["handmade::noted.out"]
    (unread,) = (row for row in rows if row["operator"] == "handmade::noted.out")
    assert "nothing reads" in unread["reason"]
    assert {row["grade"] for row in rows if row is not unread} == {"INSTRUCTION"}
    blind = run("gap", made / "built", tmp_path / "a", "--format", "json")
    assert "handmade::" in " ".join(blind.json["data"]["notes"])


def test_cases_are_bundled_and_verified(made: Path, tmp_path: Path) -> None:
    target = tmp_path / "model.bpte"
    answer = _with(made, "bundle", made / "net.pt2", "-o", target)
    assert answer.code == 0, answer.err
    assert run("verify", target).code == 1
    assert _with(made, "verify", target).code == 0


def test_gate_on_a_recipe_runs_its_program(made: Path, tmp_path: Path) -> None:
    compiled = _with(made, "compile", made / "net.pt2", "-o", tmp_path / "a")
    assert compiled.code == 0
    words = ("--require", "gap.max_abs<=1e-6", "--require", "latency<=1000ms", "--measure", "2")
    answer = run("gate", tmp_path / "a" / "recipe.json", *words)
    assert answer.code == 0, answer.out + answer.err


@pytest.mark.parametrize(
    ("name", "text", "code", "said"),
    [
        ("absent.py", None, 3, "absent.py: No such file or directory"),
        ("wrong.py", "x = 1\ny = x / 0\n", 4, "wrong.py:2: ZeroDivisionError"),
        ("exits.py", "raise SystemExit(3)\n", 4, "exits.py:1: the code called sys.exit(3)"),
        ("no.so", "no library", 2, "no.so: this library cannot be loaded"),
        ("no.txt", "", 2, "no.txt: expected a library of operators (.py, .so, .dylib, .dll)"),
    ],
)
@pytest.mark.parametrize("verb", ["compile", "run"])
def test_library_that_is_none_is_one_sentence(
    verb: str, name: str, text: str | None, code: int, said: str, made: Path, tmp_path: Path
) -> None:
    library = tmp_path / name
    if text is not None:
        library.write_text(text, "utf-8")
    what = made / ("net.pt2" if verb == "compile" else "built")
    answer = run(verb, what, "-o", tmp_path / "out", "--library", library)
    assert (answer.code, answer.err.count("\n")) == (code, 1), answer.err
    assert said in answer.err
    assert not (tmp_path / "out").exists()


@pytest.mark.interop
def test_the_other_toolchain_loads_it_too(made: Path, tmp_path: Path) -> None:
    words = ("compile", made / "only.pt2", "-o", tmp_path / "a", "--toolchain", "executorch")
    refused = run(*words)
    assert refused.code == 3
    assert "handmade::scaled is not registered" in refused.err
    answer = _with(made, *words)
    assert answer.code == 0, answer.err
    assert _with(made, "run", tmp_path / "a", "-o", tmp_path / "b").code == 0


@pytest.mark.interop
def test_kernels_of_a_shared_library_give_what_the_stock_runtime_gives(tmp_path: Path) -> None:
    import importlib.util

    import torch

    found = importlib.util.find_spec("executorch")
    assert found is not None
    assert found.submodule_search_locations is not None
    package = Path(next(iter(found.submodule_search_locations)))
    custom = package / "extension" / "llm" / "custom_ops"
    source = tmp_path / "cache.py"
    source.write_text(
        "import torch\n"
        "class Cache(torch.nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.register_buffer('cache', torch.zeros(1, 8, 2, 4))\n"
        "    def forward(self, x, at):\n"
        "        place = at.item()\n"
        "        torch._check(place >= 0)\n"
        "        torch._check(place < 8)\n"
        "        torch.ops.llama.update_cache(x, self.cache, place)\n"
        "        return self.cache * 2\n"
        "def cache():\n"
        "    return Cache().eval(), (torch.ones(1, 1, 2, 4), torch.tensor(3))\n",
        "utf-8",
    )
    python = custom / "custom_ops.py"
    built, inputs = tmp_path / "built", tmp_path / "inputs.pt"
    answer = run("compile", f"{source}:cache", "-o", built, "--library", python)
    assert answer.code == 0, answer.err
    torch.save([torch.full((1, 1, 2, 4), 3.0), torch.tensor(5)], inputs)
    shared = custom / "libcustom_ops_aot_lib.so"
    for name, words in (("ours", ("--library", shared)), ("stock", ("--toolchain", "executorch"))):
        ran = run("run", built, "-o", tmp_path / name, "--inputs", inputs, *words)
        assert ran.code == 0, ran.err
    ours, stock = (torch.load(tmp_path / name / "outputs.pt") for name in ("ours", "stock"))
    assert torch.equal(ours[0], stock[0])
    assert ours[0][0, 5].tolist() == [[6.0] * 4] * 2


PACKAGE = """
import torch
library = torch.library.Library("{space}", "DEF")  # a second time is an error of torch
library.define("doubled(Tensor x) -> Tensor")
library.define("doubled.out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)")
library.impl("doubled", lambda x: x * 2, "CompositeExplicitAutograd")
torch.library.Library("{space}", "IMPL").impl("orphan", lambda x: x, "CPU")
from {name}.ops import registered  # as the files of a package import each other
assert registered.library is library
import beside_{space}
"""


@pytest.mark.parametrize("regular", [True, False], ids=["__init__", "namespace"])
def test_library_of_a_package_that_imports_itself_by_name_is_run_once(
    regular: bool, tmp_path: Path
) -> None:
    space = f"packaged{regular:d}"
    folder = tmp_path / f"{space}_package" / "ops"
    folder.mkdir(parents=True)
    if regular:
        (folder / "__init__.py").touch()
        (folder.parent / "__init__.py").touch()
    (folder / f"beside_{space}.py").touch()
    library = folder / "registered.py"
    library.write_text(PACKAGE.format(space=space, name=folder.parent.name), "utf-8")
    code = (
        "from inspector.worker.kernels import with_libraries; import sys;"
        "from runtime import Runtime;"
        "with_libraries(sys.argv[1:]);"
        f"print(Runtime.get().operator_registry.missing(['{space}::doubled.out']))"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT), str(tmp_path)))}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, library, library.relative_to(tmp_path)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip() == "[]", done.stderr
