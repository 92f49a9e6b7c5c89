"""Folders of the variants of a program."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the window is on the screen before anything of the inspector is loaded
    from devtools_app.state.variants import Variant
    from inspector.jobs.bisect import BisectJob

RUN_FOLDER = "run"  # in that of a variant
_DIGITS = 12  # of the hash in the name of a folder
_ENDING = "_variants"
_NUMBER = re.compile(r"_(?P<number>\d{1,6})$")


def variant_folder(program: str, name: str) -> str:
    """Return a folder for the next variant of a program: next to it, else in a writable folder.

    Args:
        program: path of a file of the parent variant
        name: of that variant; a trailing number is incremented
    """
    place = variants_place(program)
    stem = _NUMBER.sub("", name) or Path(program).stem
    try:
        endings = (_NUMBER.search(name) for name in os.listdir(place))
        taken = [int(found["number"]) for found in endings if found is not None]
    except OSError:  # not there yet, or the compile reports why it cannot be written
        taken = []
    return str(place / f"{stem}_{max(taken, default=0) + 1}")


def variants_place(program: str) -> Path:
    """Return the folder of the variants of a program.

    Args:
        program: path of a file of any of its variants
    """
    path = Path(os.path.abspath(program))
    place = path.parent.parent
    if place.name.endswith(_ENDING):
        return place
    place = path.with_name(f"{path.stem}{_ENDING}")
    if os.access(path.parent, os.W_OK) and not path.is_relative_to(Path(__file__).parents[1]):
        return place
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "etscope" / f"{path.parent.name}{_ENDING}"


def folder_of(one: Variant, job: BisectJob) -> str:
    """Return the folder of the trials of a bisection of a variant."""
    first = one.files[0] if one.files else one.recipe.job.source.path
    return bisect_folder(str(variants_place(first)), job)


def bisect_folder(place: str, job: BisectJob) -> str:
    """Return the folder of the state of a bisection: equal requests find the same trials.

    Args:
        place: folder of the variants of the program
        job: the request
    """
    from inspector.jobs.bisect import key_of

    name = hashlib.sha256(key_of(job).encode()).hexdigest()[:_DIGITS]
    return os.path.join(place, f"bisect-{name}")


def trials_in(folder: str) -> bool:
    """Return whether a bisection has left its state in a folder."""
    from inspector.jobs.bisect_trials import STATE

    return os.path.isfile(os.path.join(folder, STATE))
