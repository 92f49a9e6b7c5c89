"""llm run: text behind a prompt, piece by piece."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from typing_extensions import override

from inspector.cli.answer import USAGE, Answer, CommandError, shown
from inspector.cli.job_runs import check_there, finished
from inspector.cli.llm_files import exported_files
from inspector.cli.output import refuse_existing, write_text
from inspector.cli.progress import Progress
from inspector.cli.text import printable
from inspector.files.run_calls import GENERATION
from inspector.jobs.generating import GenerateJob
from inspector.jobs.messages import STOP, Generated, Message
from inspector.jobs.run import JobRun
from inspector.tables.generation import speed_table


class _Stream(Progress):
    """Writes generated text to a terminal as it appears."""

    @override
    def show(self, messages: Sequence[Message]) -> None:
        for message in messages:
            if isinstance(message, Generated):
                sys.stderr.write(printable(message.text))
                sys.stderr.flush()
        super().show([one for one in messages if not isinstance(one, Generated)])


def run(options: Namespace) -> Answer:
    """Generate in a worker process.

    Raises: CommandError
    """
    files = exported_files(options)
    options.inputs = [files.program]
    for path in options.libraries:
        check_there(path)
    parts = _parts(options)
    job = GenerateJob(
        program=files.program,
        tokenizer=options.tokenizer,
        prompt=options.prompt,
        chat=options.chat,
        system=options.system,
        max_new_tokens=options.max_new_tokens or -1,
        temperature=options.temperature,
        top_p=options.top_p,
        seed=options.seed,
        num_bos=options.num_bos,
        ignore_eos=options.ignore_eos,
        warmup=options.warmup,
        stop=tuple(options.stop),
        data_files=files.data,
        threads=options.threads,
        engine=options.engine,
        libraries=tuple(options.libraries),
        parts=parts,
    )
    running = JobRun(job, timeout=options.timeout)
    stream = _Stream if sys.stderr.isatty() else Progress
    progress = stream(sys.stderr, ", ".join(job.libraries), verbose=options.verbose)
    if options.folder is not None:
        target = Path(options.folder) / GENERATION
        refuse_existing(target, force=options.force)
    outcome = finished(
        running, progress, verbose=options.verbose, stop=lambda: running.send(dict(STOP))
    )
    report = dict(outcome.result)
    if options.folder is not None:
        target = Path(options.folder) / GENERATION
        target.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(report, indent=1, ensure_ascii=False) + "\n"
        write_text(target, [text], force=options.force)
    return _answer(report)


def _parts(options: Namespace) -> tuple[tuple[str, str], ...]:
    """Return the parts before the last text of a prompt with images or audio, none of a text.

    Raises: CommandError, OSError
    """
    parts: list[tuple[str, str]] = options.parts
    files = [value for kind, value in parts if kind != "text"]
    if not files:
        if len(parts) > 1:
            raise CommandError("--prompt is given more than once", USAGE)
        return ()
    for path in files:
        check_there(path)
    if options.chat:
        raise CommandError("--chat cannot be combined with --image and --audio", USAGE)
    if parts[-1][0] != "text":
        raise CommandError("a prompt ends with text: --prompt TEXT behind images and audio", USAGE)
    return tuple(parts[:-1])


def _answer(report: dict[str, Any]) -> Answer:
    rate = report["tokens_per_second"]
    count = len(report["tokens"])
    speed = f"{count:,} tokens, {rate:.4g} tokens/s behind the prompt; ended by {report['ended']}"
    lines = [*report["text"].splitlines(), "", speed]
    return Answer(report, lines=lines, tables=(shown(speed_table(report)),))
