"""Who uses the stored bytes: each blob of a delegate has its node, each constant its call."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from inspector.size.files import session_sizes
from inspector.size.users import (
    User,
    blob_name,
    is_hash,
    name_inside,
    part_title,
    stored_users,
    users_of,
    users_text,
)
from inspector.tables.registry import build
from inspector.tables.table import Table
from tests.inspector.cli_runs import run
from tests.inspector.sessions import DATA, folders, label, session

SESSIONS = folders("model.pte")


@pytest.mark.parametrize("path", SESSIONS, ids=label)
def test_stored_bytes_of_stock_programs_have_a_user(path: Path) -> None:
    found = session(path)
    users = stored_users(found)
    for one in session_sizes(found):
        if one.file.kind != "pte" or one.size is None:
            continue
        for part in one.size.parts:
            if part.kind == "named data":
                assert users_of(part, users), part.name


def test_part_stored_under_its_hash_is_called_by_what_reads_it() -> None:
    found = session(DATA / "corpus/v1.5.1/convnet_xnnpack")
    users = stored_users(found)
    titles = {
        part_title(part, users)
        for one in session_sizes(found)
        for part in (one.size.parts if one.size is not None else ())
        if part.kind == "named data"
    }
    assert {"stem.0.weight", "stem.0.bias", "fc.weight"} <= titles
    assert not any(map(is_hash, titles))


def test_shared_blob_names_the_node_and_module_of_both_methods() -> None:
    users = stored_users(session(DATA / "extra" / "two_methods_xnnpack"))
    texts = [[user.text for user in found] for found in users.values()]
    shared = [names for names in texts if len(names) > 1]
    assert (
        "decode delegate 0 FullyConnected_0 filter in coder.shared",
        "encode delegate 0 FullyConnected_0 filter in coder.shared",
    ) in [tuple(sorted(names)) for names in shared]


def test_constant_is_used_by_the_call_that_reads_it() -> None:
    users = stored_users(session(DATA / "corpus" / "v1.5.1" / "tinygpt_portable"))
    assert users["v1"] == (
        User("instruction 0 aten::embedding.out in e", "forward", instruction=0, name="e.weight"),
    )


@pytest.mark.parametrize("path", SESSIONS, ids=label)
def test_constants_have_the_names_that_the_record_gives_them(path: Path) -> None:
    """No weight with a name is called by the number of its value."""
    found = session(path)
    users = stored_users(found)
    for one in session_sizes(found):
        for part in one.size.parts if one.size is not None else ():
            readers = users_of(part, users)
            if part.kind == "constant" and readers and all(user.name for user in readers):
                assert part_title(part, users).startswith(readers[0].name)


@pytest.mark.parametrize("name", ["convnet_xnnpack", "tinygpt_xnnpack"])
def test_constants_of_delegates_are_listed_by_the_names_of_modules(name: str) -> None:
    found = session(DATA / "corpus" / "v1.5.1" / name)
    table = build("constants", found, "forward")
    assert isinstance(table, Table)
    by_title = {column.title: column for column in table.columns}
    names, keys = by_title["constant"], by_title["stored as"]
    hashed = [row for row in range(table.length) if is_hash(keys.cell(row))]
    assert hashed
    assert not any(is_hash(names.cell(row)) for row in range(table.length))
    users = stored_users(found)
    for row in hashed:
        assert names.cell(row) == blob_name(users[keys.cell(row)])


def test_external_weight_is_found_under_its_key() -> None:
    users = stored_users(session(DATA / "extra" / "external_weights"))
    assert [user.text.split()[:2] for user in users["shared.weight"]] == [
        ["instruction", "0"],
        ["instruction", "3"],
    ]


def test_many_users_are_counted_not_listed() -> None:
    users = [User(name, "forward") for name in "abcd"]
    assert users_text(users) == "a, b and 2 more"
    assert users_text(users[:1]) == "a"


def test_size_says_duplicates_only_when_asked() -> None:
    model = str(DATA / "corpus" / "v1.5.1" / "convnet_xnnpack" / "model.pte")
    assert "same content" not in run("size", model).out
    assert "same content" in run("size", model, "--duplicates").out
    parts = json.loads(run("size", model, "--format", "json").out)["data"]["parts"]
    blobs = [part for part in parts if part["kind"] == "named data"]
    assert blobs
    assert all(part["used_by"] for part in blobs)


@pytest.mark.parametrize("delegates", [1, 2, 5])
def test_blob_that_several_delegates_read_is_called_by_the_users_in_the_one_that_is_shown(
    delegates: int,
) -> None:
    users = [
        User(f"delegate {one} Multiply_0 input2 in act.{one}", "forward", delegate=one)
        for one in range(delegates)
    ]
    for one in range(delegates):
        assert name_inside(users, "forward", one) == users[one].text
    assert name_inside(users, "other", 0) == users_text(users)
    named = [User(one.text, "forward", delegate=one.delegate, name="act.scale") for one in users]
    assert name_inside(named, "forward", 0) == "act.scale"
