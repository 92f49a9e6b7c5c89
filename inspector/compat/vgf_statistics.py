"""Neural statistics that the VGF backend attaches to its events: JSON with blobs in base64.

Source: ``devtools/inspector/vgf_neural_statistics.py`` of the stock package.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable
from typing import Any, cast

SCHEMA = "executorch.vgf.neural_statistics"
SCHEMA_VERSION = 1
_BLOBS = ("debug_database", "statistics_info", "statistics_memory")
_NAME = "VGF neural statistics"


def parse_vgf_neural_statistics_metadata(metadata: bytes | bytearray | str) -> dict[str, Any]:
    """Return the statistics, each blob with its bytes as ``raw_data``.

    Raises: ValueError for an unknown schema or version, or an undecodable blob; TypeError
        for anything but bytes or str
    """
    return _statistics(json.loads(_text(metadata)))


def parse_vgf_neural_statistics_delegate_metadata(
    delegate_metadata_list: Iterable[object],
) -> list[dict[str, Any]]:
    """Return the statistics among metadata of backends; other metadata is skipped.

    Raises: ValueError for statistics that are damaged
    """
    found: list[dict[str, Any]] = []
    for metadata in delegate_metadata_list:
        if not isinstance(metadata, (bytes, bytearray, str)) or not metadata:
            continue
        try:
            tree: Any = json.loads(_text(metadata))
        except ValueError as error:
            if SCHEMA in _text(metadata, errors="replace"):
                raise ValueError(f"Malformed {_NAME} delegate metadata: {error}") from error
            continue
        if isinstance(tree, dict) and cast("dict[str, Any]", tree).get("schema") == SCHEMA:
            found.append(_statistics(tree))
    return found


def _text(metadata: object, errors: str = "strict") -> str:
    if isinstance(metadata, str):
        return metadata
    if not isinstance(metadata, (bytes, bytearray)):
        raise TypeError(f"Unsupported delegate metadata type: {type(metadata)}")
    return bytes(metadata).decode("utf-8", errors)


def _statistics(tree: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    schema, version = tree.get("schema"), tree.get("schema_version")
    if schema != SCHEMA:
        raise ValueError(f"Not {_NAME} metadata: its schema is {schema!r}, expected {SCHEMA!r}")
    if version != SCHEMA_VERSION:
        raise ValueError(
            f"Unsupported {_NAME} metadata schema version: {version}, expected {SCHEMA_VERSION}"
        )
    segments = [
        {key: _blob(value) if key in _BLOBS else value for key, value in segment.items()}
        for segment in tree.get("segments", ())
    ]
    return {**tree, "segments": segments}


def _blob(blob: Any) -> Any:  # noqa: ANN401 - JSON
    if not isinstance(blob, dict):
        return cast("object", blob)
    given = cast("dict[str, Any]", blob)
    if not given.get("available", False):
        return {"raw_data": b"", **given}
    if given.get("encoding") != "base64":
        raise ValueError(f"Unsupported {_NAME} blob encoding: {given.get('encoding')}")
    try:
        return {**given, "raw_data": base64.b64decode(given.get("data", ""), validate=True)}
    except (binascii.Error, TypeError) as error:
        raise ValueError(f"Malformed base64 data in {_NAME} blob: {error}") from error
