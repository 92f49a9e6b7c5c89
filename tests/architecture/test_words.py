"""Words of committed files: the field's terms in product code, nothing of one machine anywhere."""

from __future__ import annotations

import re
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

from tests.architecture.prose import Module, modules
from tests.architecture.tree import ROOT, tracked_files

# Addresses that a reader may be sent to. Nothing is fetched from any address by our code.
ADDRESSES = {
    "docs.pytorch.org",
    "github.com",
    "json-schema.org",
    "openfontlicense.org",
    "pytorch.org",
    "rsms.me",
    "scripts.sil.org",
    "ui.perfetto.dev",
    "www.jetbrains.com",
    "www.w3.org",
}
ADDRESS = re.compile(r"https?://([\w.-]+\w)")
INDEX_OPTION = re.compile("--(?:extra-)?" + "index-url|--find-" + "links")
# A folder right below the root, such as /src, is no telling name.
OWN_FOLDERS = (ROOT, Path.home(), Path(sys.prefix))
CHECKED = re.compile(r"^\| (?P<write>[^|]+) \| (?P<avoid>`[^|]+`) \|$", re.MULTILINE)
NOT_MORE = r"(?! (?:longer|more|less|larger|smaller|later|earlier)\b)"
# "None if there is no X" is plain English as well, but not an answer "there is no X"
NOT_A_CASE = "".join(f"(?<!{word} )" for word in ("if", "when", "where", "whether", "why"))
SPECIAL = {  # "None when there is no X" is plain English, "X is no Y" is not
    f"{verb} no": rf"(?<!there )\b{verb} no\b{NOT_MORE}" for verb in ("is", "are")
} | {
    f"there {verb} no": rf"{NOT_A_CASE}\bthere {verb} no(?:ne)?\b{NOT_MORE}"
    for verb in ("is", "are")
}
# Tables of file formats are named as in their schema, whichever other format has the name too.
FORMAT_TABLES = re.compile(
    r"schema/(program/model|flat_tensor/(tables|model)|payloads/(xnnpack/model|\w+/tables))\.py"
)
TWICE = {  # classes of one name in several modules, and why
    "BackendWithCompilerDemo": "id of a backend: its compile half and its run half",
    "ExecutorBackend": "id of a backend: its compile half and its run half",
    "XnnpackBackend": "id of a backend: its compile half and its run half",
    **dict.fromkeys(
        (
            "EdgeProgramManagerTransformStage",
            "EdgeTransformAndLowerStage",
            "ExecutorchStage",
            "ExportSession",
            "QuantizeStage",
            "SourceTransformStage",
            "ToBackendStage",
            "ToEdgeStage",
            "TorchExportStage",
        ),
        "documented name: the compiler's class, and its subclass that also runs and reports",
    ),
}
FIELD = re.compile(r"\n\s*(?=\w+(?:\([^)]*\))?: )")  # begins an attribute, argument or signal
MACHINE_PATHS = (
    *(f"{folder}/" for folder in OWN_FOLDERS if len(folder.parts) > 2 or folder.name == "root"),
    "/wor" + "k/",
)


def test_product_uses_the_words_of_the_field() -> None:
    words = _avoided()
    found = []
    for module in modules():
        prose = list(_prose(module))
        folded = "\n".join(text for _, text in prose).casefold()
        for form, instead in words.items():
            if form.strip("*") not in folded:  # 30 expressions over all prose take 4 s
                continue
            pattern = _pattern(form)
            for line, text in prose:
                if match := pattern.search(text):
                    found.append(f"{module.name}:{line}: {match[0]!r}, write: {instead}")
    assert found == []


def test_word_list_has_terms_to_check() -> None:
    assert len(CHECKED.findall((ROOT / "docs" / "words.md").read_text("utf-8"))) == 31


def test_class_names_have_one_meaning() -> None:
    homes: dict[str, list[str]] = {}
    for module in modules():
        for name in () if FORMAT_TABLES.fullmatch(module.name) else module.classes:
            homes.setdefault(name, []).append(module.name)
    twice = {name: found for name, found in homes.items() if len(found) > 1}
    assert {name: found for name, found in twice.items() if name not in TWICE} == {}
    assert set(TWICE) - set(twice) == set(), "exceptions that are no longer needed"


def _avoided() -> dict[str, str]:
    """Return what to write instead, by form to avoid."""
    return {
        form: row["write"]
        for row in CHECKED.finditer((ROOT / "docs" / "words.md").read_text("utf-8"))
        for form in re.findall("`([^`]+)`", row["avoid"])
    }


def _pattern(form: str) -> re.Pattern[str]:
    plain = rf"\b{form[:-1]}\w*" if form.endswith("*") else rf"\b{form}\b"
    return re.compile(SPECIAL.get(form, plain), re.IGNORECASE)


def _prose(module: Module) -> Iterator[tuple[int, str]]:
    """Yield line and content of docstrings and of strings with a blank; others are keys."""
    sentences = [one for one in module.strings if " " in one[1].strip()]
    for line, text in (*module.docstrings, *sentences):
        yield from ((line, " ".join(part.split())) for part in FIELD.split(text))


def test_text_files_name_no_path_of_a_machine() -> None:
    found = {f"{name}: {path}" for name, text in _texts() for path in MACHINE_PATHS if path in text}
    assert found == set()


def test_text_files_name_only_known_addresses() -> None:
    found = {
        f"{name}: {host}"
        for name, text in _texts()
        for host in ADDRESS.findall(text)
        if host not in ADDRESSES
    }
    assert found == set()


def test_text_files_choose_no_package_index() -> None:
    assert [name for name, text in _texts() if INDEX_OPTION.search(text)] == []


def test_artifacts_name_no_path_of_a_machine() -> None:
    paths = [path.encode() for path in (*MACHINE_PATHS, "/site-packages/")]
    found = {
        f"{name}: {path.decode()}" for name, data in _artifacts() for path in paths if path in data
    }
    assert found == set()


def test_artifacts_together_stay_small() -> None:
    sizes = {path: path.stat().st_size for path in _data_files()}
    assert max(sizes.values()) < 1_000_000
    assert sum(sizes.values()) < 16_000_000


def _texts() -> Iterator[tuple[str, str]]:
    for path in tracked_files():
        try:
            yield path.relative_to(ROOT).as_posix(), path.read_text("utf-8")
        except UnicodeDecodeError:
            continue


def _data_files() -> list[Path]:
    data = ROOT / "tests" / "data"
    return [path for path in tracked_files() if path.is_relative_to(data)]


def _artifacts() -> Iterator[tuple[str, bytes]]:
    for path in _data_files():
        name = path.relative_to(ROOT).as_posix()
        yield name, path.read_bytes()
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                for member in archive.namelist():
                    yield f"{name}!{member}", archive.read(member)
