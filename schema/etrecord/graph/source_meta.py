"""Where a node came from: module stack, stack trace, debug handle and ancestors.

All of it is strings in the JSON, and most repeat from node to node, so each distinct
string is parsed and stored once.

Source: exir/serde/export_serialize.py and serialize.py, ``serialize_metadata``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from schema.errors import FormatError
from schema.etrecord.budget import Budget
from schema.etrecord.graph.json_text import Json, parse_json_text
from schema.graph import ModuleFrame

_NO_STACK = "_empty_nn_module_stack_from_metadata_hook"
_GETATTR = re.compile(r"getattr\(([^()]*), ?['\"]([^'\"()]*)['\"]\)")
_MODULES = re.compile(r"\._modules\[['\"]?([^'\"\]]*)['\"]?\]")
_ROOT = re.compile(r"^(?:[A-Z]\[['\"]\w*['\"]\]|L__self___?|self(?=\.|$))")
_INDEX = re.compile(r"\[['\"]?([^'\"\]]*)['\"]?\]")
_CALL_COUNT = re.compile(r"@\d+(?=\.|$)")
_MAX_PATH = 2000
_MAX_DIGITS = 18  # any such number fits 64 bits; int() of long strings takes quadratic time
_MAX_ANCESTORS = 100
_KNOWN = frozenset(("stack_trace", "nn_module_stack", "debug_handle", "from_node"))


@dataclass(frozen=True, slots=True)
class SourceMeta:
    """The decoded metadata of one node.

    Attributes:
        debug_handle: None if unset
        modules: outermost first
        stack_trace: traceback text
        from_node: ``name.graph_id``, nearest first
        extras: other metadata as strings, by key in the file
    """

    debug_handle: int | None
    modules: tuple[ModuleFrame, ...]
    stack_trace: str
    from_node: tuple[str, ...]
    extras: dict[str, object]


class SourceMetaReader:
    """Decodes node metadata, each distinct string once.

    Attributes:
        problems: parts that could not be read, each once
    """

    def __init__(self, budget: Budget) -> None:
        self.problems: dict[str, None] = {}
        self._budget = budget
        self._texts: dict[str, str] = {}
        self._stacks: dict[str, tuple[ModuleFrame, ...]] = {}
        self._frames: dict[tuple[str, str], ModuleFrame] = {}

    def read(self, metadata: dict[str, Json]) -> SourceMeta:
        """Return the decoded metadata; strings that cannot be parsed are kept unchanged."""
        extras: dict[str, object] = {}
        for key, text in metadata.items():
            if key not in _KNOWN:
                extras[key] = self._shared(text) if isinstance(text, str) else repr(text)[:200]
        stack = self._text(metadata, "nn_module_stack")
        if stack:
            extras["nn_module_stack"] = stack
        return SourceMeta(
            self._handle(metadata.get("debug_handle"), extras),
            self._modules(stack),
            self._text(metadata, "stack_trace"),
            self._ancestors(metadata.get("from_node")),
            extras,
        )

    def _text(self, metadata: dict[str, Json], key: str) -> str:
        text = metadata.get(key)
        return self._shared(text) if isinstance(text, str) else ""

    def _shared(self, text: str) -> str:
        return self._texts.setdefault(text, text)

    def _handle(self, text: Json, extras: dict[str, object]) -> int | None:
        """Return the handle; 0, which the stock tool writes for a missing handle, is preserved."""
        if text is None:
            return None
        shown = str(text)
        if shown.isdecimal() and len(shown) <= _MAX_DIGITS and int(shown):
            return int(shown)
        extras["debug_handle"] = shown[:200]
        if shown != "0":
            self.problems["a debug handle is not an integer"] = None
        return None

    def _modules(self, stack: str) -> tuple[ModuleFrame, ...]:
        known = self._stacks.get(stack)
        if known is None:
            frames = (self._frame(entry) for entry in stack.split(";") if entry)
            known = tuple(frame for frame in frames if frame)
            self._stacks[stack] = known
        return known

    def _frame(self, entry: str) -> ModuleFrame | None:
        """Return the frame of one ``key,path,type`` entry."""
        parts = split_outside_brackets(entry)
        if parts[0] == _NO_STACK:
            return None
        path = module_path(",".join(parts[1:-1]) if len(parts) > 2 else parts[0])
        key = (path, parts[-1] if len(parts) > 1 else "")
        return self._frames.setdefault(key, ModuleFrame(*key))

    def _ancestors(self, source: Json) -> tuple[str, ...]:
        """Return the chain of last entries, each one step older than the one before."""
        try:
            text = isinstance(source, str)
            entries = parse_json_text(source, self._budget, "from_node") if text else source
            chain: list[str] = []
            while entries and len(chain) < _MAX_ANCESTORS:
                entry = entries[-1]
                chain.append(self._shared(f"{entry['name']}.{entry['graph_id']}"))
                entries = entry.get("from_node")
            return tuple(chain)
        except (FormatError, KeyError, TypeError, AttributeError, ValueError):
            self.problems["a from_node string cannot be read"] = None
            return ()


def module_path(raw: str) -> str:
    """Return the dotted path of a module from any form a release wrote it in.

    ``features.0``, ``L['self'].features.0``, ``getattr(L['self'].features, '0')``,
    ``L['self']._modules['features'][0]`` and ``features.0@1`` (a second call) are the same.
    """
    path = raw.strip()
    if len(path) > _MAX_PATH:
        return path
    while "getattr(" in path:
        flat = _GETATTR.sub(r"\1.\2", path)
        if flat == path:
            break
        path = flat
    path = _ROOT.sub("", path)
    path = _INDEX.sub(r".\1", _MODULES.sub(r".\1", path))
    return _CALL_COUNT.sub("", path).strip(".")


def split_outside_brackets(text: str) -> list[str]:
    """Return the parts between commas that are not inside brackets."""
    if "(" not in text and "[" not in text:
        return [part.strip() for part in text.split(",")]
    parts, start, depth = list[str](), 0, 0
    for at, char in enumerate(text):
        if char in "[(":
            depth += 1
        elif char in ")]":
            depth -= 1
        elif char == "," and depth <= 0:
            parts.append(text[start:at].strip())
            start = at + 1
    parts.append(text[start:].strip())
    return parts
