"""Phrases of the window that newcomers stumbled over are written nowhere any more."""

from __future__ import annotations

import ast

import pytest

from tests.architecture.tree import ROOT, tracked_files

# what was written, and what is written instead
PHRASES = {
    "in no instruction": "outside of its instructions",
    " in all": ".pte file",
    "nodes only in the first": "nodes removed",
    "nodes not in the first": "nodes added",
    "recorded weights that": "changed weights",
    "of it added by the node": "own error",
    "rest of the delegate": "delegate overhead",
    "holes": "unused at the peak",
    "their borders": "boundaries",
    "every border": "every boundary",
    "alone nodes": "separate partition",
}
COUNTED = "in all"  # plain English behind a number: "6 parts in all"


@pytest.mark.parametrize("phrase", PHRASES)
def test_no_string_of_the_window_has_the_phrase(phrase: str) -> None:
    found = []
    for path in tracked_files():
        name = path.relative_to(ROOT).as_posix()
        if path.suffix != ".py" or not name.startswith(("devtools_app/", "inspector/")):
            continue
        if "/sample_data/" in name:
            continue
        tree = ast.parse(path.read_bytes())
        documented = {
            id(one.body[0].value)
            for one in ast.walk(tree)
            if isinstance(one, (ast.Module, ast.ClassDef, ast.FunctionDef))
            and ast.get_docstring(one, clean=False) is not None
        }
        for node in ast.walk(tree):
            text = node.value if isinstance(node, ast.Constant) else None
            if not isinstance(text, str) or id(node) in documented:
                continue
            bare = text.casefold().strip() == phrase.strip()
            if bare if phrase.strip() == COUNTED else phrase in text.casefold():
                found.append(f"{name}:{node.lineno}: {text!r}, write: {PHRASES[phrase]}")
    assert found == []
