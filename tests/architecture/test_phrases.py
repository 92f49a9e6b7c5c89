"""Phrases of the window that newcomers stumbled over are written nowhere any more."""

from __future__ import annotations

from tests.architecture.prose import modules

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


def test_no_string_of_the_window_has_one_of_the_phrases() -> None:
    found = []
    for module in modules():
        if not module.name.startswith(("devtools_app/", "inspector/")):
            continue
        for line, text in module.strings:
            folded = text.casefold()
            for phrase, instead in PHRASES.items():
                bare = folded.strip() == phrase.strip()
                if bare if phrase.strip() == COUNTED else phrase in folded:
                    found.append(f"{module.name}:{line}: {text!r}, write: {instead}")
    assert found == []
