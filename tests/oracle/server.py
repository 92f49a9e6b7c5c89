"""Answer questions about files with the stock tool: one JSON line in, one JSON line out.

The stock tool costs seconds to import and may end its process, so tests keep it in a child
process (`tests.oracle.client`) and talk to it over pipes. Answers leave on the descriptor that
was standard output; stray prints of Python and C go to standard error.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from pathlib import Path
from typing import Any

warnings.filterwarnings("ignore")


def main() -> int:
    """Answer until standard input ends."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    for line in sys.stdin:
        answers.write(json.dumps(answer(json.loads(line))) + "\n")
        answers.flush()
    return 0


def answer(question: dict[str, Any]) -> dict[str, Any]:
    """Return the facts asked for, or the exception that the stock tool raised."""
    arguments = {key: _argument(key, value) for key, value in question["arguments"].items()}
    try:
        return verbs()[question["verb"]](**arguments)
    except Exception as error:  # noqa: BLE001  whatever the stock tool raises is the fact
        return {"error": str(error), "error_type": type(error).__name__}


def _argument(key: str, value: Any) -> Any:
    scalar = value is None or key in ("seed", "source_time_scale", "target_time_scale")
    return value if scalar else Path(value)


def verbs() -> dict[str, Any]:
    """Return the table of questions; stock modules are imported at the first one."""
    from tests.oracle import events, programs, rebuilt, records, session

    return {
        "bundled_program": programs.decoded_bundled_program,
        "data_file": programs.decoded_data_file,
        "etdump": programs.decoded_etdump,
        "inspector": events.inspector_facts,
        "program": programs.decoded_program,
        "rebuilt": rebuilt.rebuilt_facts,
        "record": records.record_facts,
        "run": programs.run_program,
        "session": session.session_facts,
    }


if __name__ == "__main__":
    sys.exit(main())
