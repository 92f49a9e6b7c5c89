"""Neural statistics of the VGF backend, from what it attaches to events of a trace."""

from __future__ import annotations

import base64
import json
import random
from typing import Any

import pytest

from inspector import Inspector
from inspector.compat.vgf_statistics import (
    SCHEMA,
    parse_vgf_neural_statistics_delegate_metadata,
    parse_vgf_neural_statistics_metadata,
)
from schema.etdump import build, encode
from schema.etdump.events import ProfileEvent

BLOBS = ("debug_database", "statistics_info", "statistics_memory")


def _made(rng: random.Random, segments: int) -> tuple[dict[str, Any], list[dict[str, bytes]]]:
    contents = [
        {name: rng.randbytes(rng.randint(0, 40)) for name in BLOBS} for _ in range(segments)
    ]
    listed = [
        {"segment_id": number}
        | {
            name: {
                "available": bool(data),
                "encoding": "base64",
                "size": len(data),
                "data": base64.b64encode(data).decode(),
            }
            for name, data in each.items()
        }
        for number, each in enumerate(contents)
    ]
    tree = {"schema": SCHEMA, "schema_version": 1, "api_available": True, "segments": listed}
    return tree, contents


@pytest.mark.parametrize("kind", [bytes, bytearray, str])
def test_blobs_are_decoded_and_the_rest_is_kept(kind: type) -> None:
    rng = random.Random(0)
    for segments in range(4):
        tree, contents = _made(rng, segments)
        text = json.dumps(tree)
        found = parse_vgf_neural_statistics_metadata(text if kind is str else kind(text.encode()))
        raw = [{name: each[name].pop("raw_data") for name in BLOBS} for each in found["segments"]]
        assert raw == contents
        assert found == tree


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"schema_version": 2}, "Unsupported VGF neural statistics metadata schema version: 2"),
        ({"schema": "other"}, "Not VGF neural statistics metadata"),
        ({"encoding": "hex"}, "Unsupported VGF neural statistics blob encoding: hex"),
        ({"data": "not base64!"}, "Malformed base64 data in VGF neural statistics blob"),
    ],
)
def test_what_cannot_be_read_is_named(change: dict[str, Any], sentence: str) -> None:
    tree, _ = _made(random.Random(1), 1)
    blob = tree["segments"][0]["debug_database"]
    blob["available"] = True
    for key, value in change.items():
        (tree if key in tree else blob)[key] = value
    with pytest.raises(ValueError, match=sentence):
        parse_vgf_neural_statistics_metadata(json.dumps(tree))


def test_metadata_of_others_is_left_out_and_damage_is_not() -> None:
    tree, _ = _made(random.Random(2), 1)
    text = json.dumps(tree)
    others = [b"", None, 7, b"no json", b"\xff\xfe", b'{"schema": "other"}', b"[1]", text]
    assert len(parse_vgf_neural_statistics_delegate_metadata(others)) == 1
    with pytest.raises(ValueError, match="Malformed VGF neural statistics delegate metadata"):
        parse_vgf_neural_statistics_delegate_metadata([text[:-2].encode()])


@pytest.mark.filterwarnings("ignore:Output Buffer not found")
def test_inspector_finds_them_in_a_trace() -> None:
    rng = random.Random(3)
    trees = [_made(rng, 2)[0] for _ in range(3)]
    events = [
        ProfileEvent(
            None, 0, at, 10, 20, delegate_id_str=f"vgf {at}", metadata=json.dumps(t).encode()
        )
        for at, t in enumerate(trees)
    ]
    other = ProfileEvent(None, 0, 3, 10, 20, delegate_id_str="other", metadata=b"\x01\x02")
    trace = encode(build.dump([build.run("Execute", [*events, other])]))
    inspector = Inspector(etdump_data=trace)
    found = inspector.get_vgf_neural_statistics()
    assert [len(each["segments"]) for each in found] == [2, 2, 2]
    data = [each["segments"][0]["debug_database"]["data"] for each in found]
    assert data == [tree["segments"][0]["debug_database"]["data"] for tree in trees]
