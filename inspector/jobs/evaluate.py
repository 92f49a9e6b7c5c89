"""An evaluation on a data set as a job, with a folder of samples that outlives its workers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from typing_extensions import override

from inspector.files.machine import torch_release
from inspector.jobs.eval_samples import (
    SAMPLES,
    SETTINGS,
    EvalSample,
    EvalSettings,
    EvalState,
    append_sample,
    drop_cut_line,
    read_evaluation,
)
from inspector.jobs.executing import RunJob
from inspector.jobs.messages import Ended, Evaluated, Evaluating, Log, Message, Outcome
from inspector.jobs.output_folder import FolderError, check_folder
from inspector.jobs.resuming import restart_words
from inspector.jobs.supervisor import Setup, Supervisor
from inspector.recipes.data_source import data_source, fingerprint
from inspector.recipes.emission import file_of
from inspector.recipes.source import Source
from schema.errors import FormatError
from schema.objects.atomic_file import write_atomically


@dataclass(frozen=True, slots=True)
class EvalReference:
    """The reference of the outputs.

    Attributes:
        words: description
        source: of the program that computes it; None for a variant
        variant: index of that variant
        notes: sentences about it
    """

    words: str
    source: Source | None = None
    variant: int = -1
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EvalJob:
    """A request to run variants over a data set.

    Attributes:
        names: of the variants
        variants: how each is run; inputs, runs and recording are ignored
        data: source of the samples, see ``DataSource``
        reference: the reference of the outputs
        metric: ``FILE.py:NAME`` of a function of the outputs and targets; empty for none
        samples: most samples; None for all
        ranges: whether the ranges of quantized values are observed, in recorded programs
    """

    names: tuple[str, ...]
    variants: tuple[RunJob, ...]
    data: str
    reference: EvalReference = field(default_factory=lambda: EvalReference("", variant=0))
    metric: str = ""
    samples: int | None = None
    ranges: bool = False


def program_part(name: str) -> str:
    """Return the part of a key with the hashes of the program of a variant."""
    return f"the program of {name}"


def key_of(job: EvalJob) -> dict[str, str]:
    """Return the parts of an evaluation and their hashes; samples of other ones are not reused.

    Raises: OSError for a missing file
    """
    found: dict[str, str] = {}
    for name, one in zip(job.names, job.variants, strict=True):
        files = [fingerprint(path) for path in (one.program, *one.data_files, *one.libraries)]
        how = (one.method, one.engine, str(one.threads), *one.backend_options, *files)
        found[program_part(name)] = " ".join(how)
    source = data_source(job.data)
    content = fingerprint(source.path) if source.path else ""
    found["the data set"] = f"{job.data} {content}"
    if job.metric:
        found["the metric"] = f"{job.metric} {fingerprint(file_of(job.metric))}"
    if job.ranges:
        found["the request for ranges"] = "of recorded programs"
    own = job.reference.source
    content = fingerprint(own.path) if own is not None else str(job.reference.variant)
    found["the reference"] = f"{job.reference.words} {content}"
    found["torch"] = torch_release()
    return found


class EvalSupervisor(Supervisor[EvalState]):
    """Stores the samples of an evaluation in its target folder, or resumes from them.

    A variant that crashes the worker is left out from then on; another worker continues with the
    others. The next call tries it again, on the samples that it was left out of.
    """

    def __init__(self, job: EvalJob, setup: Setup) -> None:
        """Start, or resume from the samples in the folder; ``force`` starts over.

        Raises: FolderError if the folder has something else in it or cannot be used; OSError
            for a missing file
        """
        super().__init__(job, setup)
        self._folder = setup.target  # None keeps samples in memory only
        self._lost: dict[int, str] = {}
        self._running: Evaluating | None = None
        own = job.reference
        settings = EvalSettings(
            key_of(job) if setup.target is not None else {},
            job.names,
            tuple(one.program for one in job.variants),
            tuple(one.method for one in job.variants),
            job.data,
            job.metric,
            own.words,
            own.variant if own.source is None else -1,
            own.notes,
        )
        self._settings = settings
        self._samples: dict[int, EvalSample] = {}
        self._restart = ""
        self._repeated: set[int] = set()
        self._resume()

    @property
    def state(self) -> EvalState:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Return the settings and the samples so far."""
        samples = dict(sorted(self._samples.items()))
        return EvalState(self._settings, samples, self._restart, len(self._repeated))

    def _resume(self) -> None:
        folder = self._folder
        if folder is None:
            return
        there = (folder / SETTINGS).is_file()
        if not there:
            check_folder(folder, force=self.setup.force)
        found = None
        if there and not self.setup.force:
            try:
                found = read_evaluation(folder)
            except (FormatError, OSError) as error:
                raise FolderError(f"{error}; --force starts over", usage=True) from error
        if found is not None and found.settings.key == self._settings.key:
            self._samples = dict(found.samples)
            self._repeated = {
                index
                for index, sample in found.samples.items()
                if any(one.lost for one in sample.variants)
            }
            self._write(drop_cut_line)
            self._save(keep=True)
            return
        if found is not None and found.samples:
            self._restart = restart_words(found.settings.key, self._settings.key)
        self._save(keep=False)

    @override
    def request(self) -> tuple[EvalJob, Mapping[str, Any]]:
        known = {
            str(index): one.digest
            for index, one in self._samples.items()
            if index not in self._repeated
        }
        lost = {str(number): sentence for number, sentence in self._lost.items()}
        return self.job, {"known": known, "lost": lost}

    @override
    def note(self, message: Message) -> Message | None:
        if isinstance(message, Evaluating):
            self._running = message
            return None
        if isinstance(message, Evaluated):
            self._running = None
            self._keep(message.sample)
        return message

    @override
    def ended(self, outcome: Outcome, *, cancelled: bool) -> Outcome | None:
        running = self._running
        lost = running.variant if running is not None else -1
        crashed = outcome.ended is Ended.CRASHED and not cancelled
        if crashed and lost >= 0 and lost not in self._lost:
            self.added.append(Log(outcome.details, library=True))
            self._lost[lost] = outcome.sentence
            self._running = None
            return None
        if outcome.ended is Ended.FINISHED and outcome.result.get("total") is not None:
            total = int(outcome.result["total"])
            self._samples = {index: one for index, one in self._samples.items() if index < total}
            self._settings = replace(self._settings, total=total)
            self._save(keep=True)
        return outcome

    def _keep(self, sample: EvalSample) -> None:
        self._samples[sample.index] = sample
        self._repeated.discard(sample.index)
        self._write(lambda folder: append_sample(folder, sample))

    def _save(self, *, keep: bool) -> None:
        """Write the settings, and remove samples of other ones."""
        text = self._settings.text.encode("utf-8")

        def write(folder: Path) -> None:
            folder.mkdir(parents=True, exist_ok=True)
            if not keep:
                (folder / SAMPLES).unlink(missing_ok=True)
            write_atomically(folder / SETTINGS, lambda stream: stream.write(text))

        self._write(write)

    def _write(self, action: Callable[[Path], None]) -> None:
        if self._folder is None:
            return
        try:
            action(self._folder)
        except OSError as error:
            words = f"{self._folder} cannot be written: {error.strerror or error}"
            raise FolderError(words) from error
