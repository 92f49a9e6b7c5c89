"""Stack traces as the frames that a program file may hold for each instruction."""

from __future__ import annotations

import re

import torch

from schema.program import model as m

_FRAME = re.compile(
    r'File "(?P<file>[^"]*)", line (?P<line>\d+), in (?P<name>[^\n]*)(?:\n +(?P<code>[^\n]*))?'
)


def frames_of(node: torch.fx.Node) -> m.FrameList:
    """Return the frames of a node's stack trace, outermost first; empty if it has no trace."""
    text = str(node.meta.get("stack_trace") or "")
    return m.FrameList(
        tuple(
            m.Frame(found["file"], int(found["line"]), found["name"], (found["code"] or "").strip())
            for found in _FRAME.finditer(text)
        )
    )
