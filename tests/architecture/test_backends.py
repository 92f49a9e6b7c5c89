"""Only the table of traits names a backend.

The rule, for code: identifiers, imported modules and strings, in lower case and without ``_`` and
``-``, must not contain the id of a backend, its short name, a stem of it or the class of a
partitioner; a string must not be the alias of one. Docstrings and comments may name backends, since
they explain.

Free are: the tables; the folders and files that an entry names, or that are called as a backend;
``compat`` and what ports scripts, whose names are those of the stock package; the window's recorded
samples. Short names that mean something else, too, are not looked for.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from schema.backends import BACKENDS, PartitionerTraits, partitioners, resolve
from schema.vendors.table import VENDORS
from tests.architecture.tree import PACKAGES, ROOT, tracked_files

TABLES = (ROOT / "schema/backends.py", ROOT / "schema/vendors/table.py")
ORDINARY = {  # short names that are words of torch, of Python or of English
    "arm", "cuda", "demo", "enn", "example", "executor", "metal", "mlx", "mps", "native", "neutron"
}  # fmt: skip
STEMS = {"xnn", "qualcomm", "hexagon"}  # as in vendors' files and metadata
# The documented method that returns what one backend attaches to its events.
DOCUMENTED = ("vgfneuralstatistics", "vgfstatistics")


def test_only_the_table_names_a_backend() -> None:
    words = re.compile("|".join(map(re.escape, sorted(_words(), key=len, reverse=True))))
    aliases = {one.alias for one in partitioners()}
    found: list[str] = []
    for path in _checked():
        source = path.read_text("utf-8")
        if not words.search(_plain(source)) and not any(alias in source for alias in aliases):
            continue  # most files; they need not be parsed
        for line, text in _code(ast.parse(source)):
            plain = _plain(text)
            for documented in DOCUMENTED:
                plain = plain.replace(documented, "")
            if words.search(plain) or text in aliases:
                found.append(f"{path.relative_to(ROOT)}:{line}: {text[:60]}")
    assert found == []


def test_runtime_names_no_backend_in_docstrings_either() -> None:
    names = {*_words()} & {_plain(one.id) for one in BACKENDS.values() if one.executor} | {
        "xnnpack"
    }
    paths = [path for path in _checked() if path.is_relative_to(ROOT / "runtime")]
    assert len(paths) > 40
    texts = {path: _plain(path.read_text("utf-8")) for path in paths}
    assert [path for path, text in texts.items() if any(name in text for name in names)] == []


def test_only_the_table_names_a_backend_sees_what_it_looks_for() -> None:
    words = _words()
    assert {"xnnpackbackend", "xnnpack", "vulkan", "qnn", "openvino", "mpsbackend"} <= words
    assert words.isdisjoint(ORDINARY)
    checked = {str(path.relative_to(ROOT)) for path in _checked()}
    assert {"inspector/roofline/rows.py", "runtime/backends/graph/engine.py"} <= checked
    assert "inspector/roofline/payload_nodes.py" not in checked
    code = ast.parse('"""XNNPACK."""\nfrom a.xnnpack import b\nx = f"to {b} XNNPACK"\n')
    assert [text for _, text in _code(code) if "xnnpack" in _plain(text)] == [
        "a.xnnpack",
        " XNNPACK",
    ]
    assert len(list(_checked())) > 700


@pytest.mark.slow
def test_names_of_the_table_can_be_resolved() -> None:
    for backend in BACKENDS.values():
        for place in _places(backend):
            if not place.startswith("compiler.backends.xnnpack.quantizer"):  # it needs torchao
                assert resolve(place) is not None


def _words() -> set[str]:
    ids = {backend.id for backend in BACKENDS.values()}
    names = {backend.name for backend in BACKENDS.values()}
    classes = {one.class_name for one in partitioners()}
    return {_plain(word) for word in ids | names | classes | STEMS} - ORDINARY


def _plain(text: str) -> str:
    return text.lower().replace("_", "").replace("-", "")


def _places(backend: object) -> Iterator[str]:
    """Yield the dotted names of an entry, its partitioners' too."""
    values = (getattr(backend, name) for name in type(backend).__dataclass_fields__)
    for value in values:
        if isinstance(value, tuple):
            yield from (one.place for one in value if isinstance(one, PartitionerTraits))
        elif isinstance(value, str) and value.startswith(tuple(f"{one}." for one in PACKAGES)):
            yield value


def _own() -> set[Path]:
    """Return the folders and files that entries name."""
    places = {p.partition(":")[0] for one in BACKENDS.values() for p in _places(one)}
    places |= {one.make.partition(":")[0] for one in VENDORS if one.make}
    paths = {ROOT / place.replace(".", "/") for place in places}
    return {path if path.is_dir() else path.with_suffix(".py") for path in paths}


def _checked() -> Iterator[Path]:
    own = _own()
    names = {path.stem for path in own} & {_plain(one.name) for one in BACKENDS.values()}
    called = names - ORDINARY
    compat = ("compiler/compat/", "compiler/llm/compat/", "inspector/compat/", "runtime/compat/")
    free = ("devtools_app/sample_data/", *compat)
    for path in tracked_files():
        relative = path.relative_to(ROOT)
        if path.suffix != ".py" or relative.parts[0] not in PACKAGES or path in TABLES:
            continue
        if str(relative).startswith(free) or names & {*relative.parts}:
            continue
        if path.stem.split("_")[0] in called:
            continue
        if own.isdisjoint({path, *path.parents}):
            yield path


def _code(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield line and text of each identifier, module and string that is not a docstring."""
    prose = {id(one.value) for one in ast.walk(tree) if isinstance(one, ast.Expr)}
    for node in ast.walk(tree):
        line = getattr(node, "lineno", 0)
        if isinstance(node, ast.Constant):
            if isinstance(node.value, str) and id(node) not in prose:
                yield line, node.value
        elif isinstance(node, ast.ImportFrom):
            yield line, node.module or ""
        else:
            for field in ("id", "attr", "name", "arg", "asname"):
                text = getattr(node, field, None)
                if isinstance(text, str):
                    yield line, text
