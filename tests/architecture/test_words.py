"""Nothing of one machine in committed files: no absolute paths, no addresses but public ones."""

from __future__ import annotations

import re
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

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
MACHINE_PATHS = (
    *(f"{folder}/" for folder in OWN_FOLDERS if len(folder.parts) > 2 or folder.name == "root"),
    "/wor" + "k/",
)


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
    assert sum(sizes.values()) < 12_000_000


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
