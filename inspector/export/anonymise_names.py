"""Replacement names for an anonymised copy: of the same length, and equal for equal names.

Lengths are kept so that a file can be changed in place without moving anything.
"""

from __future__ import annotations

import json
import re
from typing import cast

# These describe the purpose of a tensor, not its model.
_COMMON = frozenset(
    ("weight", "bias", "running_mean", "running_var", "num_batches_tracked", "scale", "zero_point")
)
# Inputs that are called after their kind alone.
_PLAIN_INPUTS = frozenset(
    ["data", "image", "images", "input", "inputs", "kwargs", "mask", "other", "tensor", "value"]
)
_NUMBERED = re.compile(r"_?(?:arg|args|input|kwarg|kwargs|input_spec)_?\d*(?:_\d+)*")
_LEAST_WORD = 6  # letters of a word of its own; shorter ones are also words of formats
_FIRST = "mnopqrstuvwxyzabcdefghijklMNOPQRSTUVWXYZABCDEFGHIJKL"
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_HASH = re.compile(r"(?:\w+_)?[0-9a-f]{32,}")
_GENERATED = re.compile(r"_?(?:lifted_tensor_constant|tensor_constant|prop_tensor_constant)\d*")
_LIBRARY = re.compile(r"^(?P<before>.*?)(?P<kept>(?:site|dist)-packages[/\\].*)$")
_OPEN = re.compile(r"[/\\](?:torch|torchao|torchvision|executorch|numpy)[/\\]")
_PATH = re.compile(
    rb"(?<![\w.\\-])(?:/+|~/|[A-Za-z]:[\\/])[\w.+@ -]+(?:[\\/]+[\w.+@ -]+)+|\\\\[\w.-]+\\[\w.\\ -]+"
)
_FRAME = re.compile(r'^(\s*File ")([^"]*)(", line \d+, in )(.*)$')


class Names:
    """The replacements so far, for all files of one session."""

    def __init__(self) -> None:
        self._parts: dict[str, str] = {}
        self._files: dict[str, str] = {}
        self._functions: dict[str, str] = {}
        self._counts: dict[tuple[str, int], int] = {}
        self._known: dict[str, str] = {}
        self._words: dict[str, str] = {}  # inputs and keys, known as whole words only

    def qualified(self, name: str) -> str:
        """Return the replacement of a dotted name, part by part; hashes and numbers stay."""
        if not name or _HASH.fullmatch(name) or _GENERATED.fullmatch(name):
            return name
        found = ".".join(self._part(part) for part in name.split("."))
        self._known[name] = found
        if "." not in name:
            self._words[name] = found
        return found

    def _part(self, part: str) -> str:
        if not part or part.isdecimal() or part in _COMMON or _GENERATED.fullmatch(part):
            return part
        if part not in self._parts:
            self._parts[part] = self._code("part", len(part.encode()))
        return self._parts[part]

    def _code(self, kind: str, length: int) -> str:
        """Return the next unused string of this length for this kind."""
        number = self._counts.get((kind, length), 0)
        self._counts[kind, length] = number + 1
        digits = ""
        for _ in range(length - 1):
            number, digit = divmod(number, len(_DIGITS))
            digits = _DIGITS[digit] + digits
        return _FIRST[number % len(_FIRST)] + digits

    def placeholder(self, name: str, qualified: str) -> str:
        """Return the replacement of a graph input that is named after a tensor, ``p_fc_weight``."""
        flat = qualified.replace(".", "_")
        if name.endswith(flat):
            return name[: len(name) - len(flat)] + self.qualified(qualified).replace(".", "_")
        return name

    def word(self, name: str) -> str:
        """Return the replacement of an input of a method or a key of a dictionary."""
        if len(name) < 2 or name in _PLAIN_INPUTS or _NUMBERED.fullmatch(name):
            return name
        self._words[name] = self._part(name)
        return self._words[name]

    def containers(self, text: str) -> str:
        """Return the description of nested inputs or outputs with keys and classes replaced.

        Its length in UTF-8 is kept; one that cannot be read is blank.
        """
        room = len(text.encode())
        if not text:
            return text
        try:
            found = json.dumps(self._container(json.loads(text)))
        except (ValueError, RecursionError):
            return " " * room
        return found.ljust(room) if len(found) <= room else " " * room

    def _container(self, node: object) -> object:
        if isinstance(node, list):
            return [self._container(one) for one in cast("list[object]", node)]
        if not isinstance(node, dict):
            return node
        found = {key: self._container(one) for key, one in cast("dict[str, object]", node).items()}
        kind, context = found.get("type"), found.get("context")
        if isinstance(kind, str):
            found["type"] = self.module_type(kind)
        if isinstance(context, str):
            found["context"] = self._context(context)
        return found

    def _context(self, text: str) -> str:
        """Return the keys of a container, a list in JSON, or the name of its class, replaced."""
        try:
            return json.dumps(self._keys(json.loads(text)))
        except ValueError:
            return self.module_type(text)

    def _keys(self, node: object) -> object:
        if isinstance(node, str):
            return self.word(node)
        if isinstance(node, list):
            return [self._keys(one) for one in cast("list[object]", node)]
        if isinstance(node, dict):
            items = cast("dict[str, object]", node).items()
            return {self.word(key): self._keys(one) for key, one in items}
        return node

    def file(self, path: str) -> str:
        """Return the replacement of a source file; files of known libraries keep their names."""
        if not path or path.startswith("<"):
            return path
        match = _LIBRARY.match(path)
        if match is None:
            return self._file(path)
        before = "x" * max(len(match["before"].encode()) - 1, 0)
        before += "/" if match["before"] else ""
        if _OPEN.search(match["kept"]):
            return before + match["kept"]
        head, tail = match["kept"][:14], match["kept"][14:]
        return before + head + self._file(tail)

    def _file(self, path: str) -> str:
        if path not in self._files:
            length = len(path.encode())
            number = len(self._files)
            room = max(length - 7, 0)
            found = f"file{number:0{room}d}.py" if room else ""
            self._files[path] = found if len(found) == length else self._code("file", length)
        return self._files[path]

    def function(self, name: str) -> str:
        """Return the replacement of a function name; ``forward`` is kept."""
        if name in ("forward", "<module>", "<lambda>", "__call__", ""):
            return name
        if name not in self._functions:
            self._functions[name] = self._code("function", len(name.encode()))
        return self._functions[name]

    def traceback(self, text: str) -> str:
        """Return a traceback without its lines of code and with all names replaced."""
        lines: list[str] = []
        for line in text.splitlines():
            match = _FRAME.match(line)
            if match is not None:
                library = _OPEN.search(match[2]) and _LIBRARY.match(match[2])
                function = match[4] if library else self.function(match[4].strip())
                lines.append(f"{match[1]}{self.file(match[2])}{match[3]}{function}")
            elif line.strip():
                lines.append("    …")
        return "\n".join(lines)

    def module_type(self, name: str) -> str:
        """Return the replacement of a class; those of torch are kept."""
        if name.startswith(
            ("torch.", "torchvision.", "torchao.", "executorch.", "builtins.", "collections.")
        ):
            return name
        return ".".join(self._part(part) for part in name.split("."))

    def inside(self, data: bytes) -> bytes:
        """Return bytes with all names seen so far and all absolute paths replaced in place."""
        found = data
        for name, other in sorted(self._known.items(), key=lambda item: -len(item[0])):
            for old, new in _spellings(name, other):
                if old in found and old != new:
                    pattern = rb"(?<![A-Za-z0-9])" + re.escape(old) + rb"(?![A-Za-z0-9])"
                    found = re.sub(pattern, lambda _, new=new: new, found)
        for name, other in self._words.items():
            told = "_" in name or len(name) >= _LEAST_WORD
            if told and name != other and name.encode() in found:
                pattern = rb"(?<![A-Za-z0-9_])" + re.escape(name.encode()) + rb"(?![A-Za-z0-9_])"
                found = re.sub(pattern, other.encode(), found)
        return without_paths(found)


def _spellings(name: str, other: str) -> list[tuple[bytes, bytes]]:
    """Return the spellings of a name inside a payload but for a word alone."""
    flat, flat_other = name.replace(".", "_"), other.replace(".", "_")
    pairs = [(f"{head}_{flat}", f"{head}_{flat_other}") for head in ("p", "b", "c")]
    if "." in name:
        pairs += [(name, other), (flat, flat_other)]
    return [(old.encode(), new.encode()) for old, new in pairs]


def without_paths(data: bytes) -> bytes:
    """Return bytes with every absolute path overwritten by as many ``x``."""
    return _PATH.sub(lambda match: b"x" * len(match.group()), data)


def is_path_like(text: str) -> bool:
    """Return whether a string looks like a path of a machine."""
    return _PATH.search(text.encode("utf-8", "replace")) is not None
