"""Calls a user's function and exports what it returns; needs torch and nothing else.

It imports none of the other modules, and its own relatively, since an interpreter chosen by the
user may run it without our packages, see ``export_script``.
"""

from __future__ import annotations

from .answers import FORWARD
from .errors import AnswerError, failure, is_users, place_of, point_to, sentence_of
from .exporting import (
    CONSTANTS,
    MANIFEST,
    Exported,
    Say,
    answer_of,
    export_answer,
    exported,
    member_of,
    module_of,
    redirect_logs,
    save_exported,
    timed_stage,
)

__all__ = [
    "CONSTANTS",
    "FORWARD",
    "MANIFEST",
    "AnswerError",
    "Exported",
    "Say",
    "answer_of",
    "export_answer",
    "exported",
    "failure",
    "is_users",
    "member_of",
    "module_of",
    "place_of",
    "point_to",
    "redirect_logs",
    "save_exported",
    "sentence_of",
    "timed_stage",
]
