"""The samples of an evaluation, stored one per line so that it can be resumed."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from inspector.numerics.metrics import ErrorSums
from schema.errors import FormatError
from schema.objects.codec import from_json, read_versioned, to_json

SETTINGS, SAMPLES = "eval.json", "samples.jsonl"
VERSION = 1
_LARGEST = 64 << 20  # bytes of the settings, and of a line


@dataclass(frozen=True, slots=True)
class OutputSums:
    """One output of one sample beside its reference.

    Attributes:
        sums: over the elements
        dtype: of the reference
        shape: of the reference
        rows: rows of a class-like output, whose largest elements are compared; else 0
        agreeing: rows whose largest element is at the same place
        note: why it was not compared, empty otherwise
    """

    sums: ErrorSums
    dtype: str
    shape: tuple[int, ...]
    rows: int = 0
    agreeing: int = 0
    note: str = ""


@dataclass(frozen=True, slots=True)
class ObservedRange:
    """Values that were quantized with a fixed scale.

    Attributes:
        node: that quantizes, in the recorded program
        made_by: node whose result it quantizes
        source: ``file:line`` of that node, empty if unknown
        least: smallest value that the scale can hold
        most: largest one
        low: smallest value of the data
        high: largest one
        elements: number of elements
        clipped: of them beyond what the scale can hold, by more than half a step
    """

    node: str
    made_by: str
    source: str
    least: float
    most: float
    low: float
    high: float
    elements: int
    clipped: int


@dataclass(frozen=True, slots=True)
class VariantSample:
    """One sample as a variant computed it.

    Attributes:
        outputs: beside the reference; empty for the reference itself
        metrics: values of the user's metric by name; None for what is not finite
        error: why the variant did not run, empty otherwise
        ranges: of quantized values, in order of execution; empty if not observed
        lost: whether it did not run because it had crashed its worker
    """

    outputs: tuple[OutputSums, ...] = ()
    metrics: Mapping[str, float | None] = field(default_factory=dict[str, "float | None"])
    error: str = ""
    ranges: tuple[ObservedRange, ...] = ()
    lost: bool = False


@dataclass(frozen=True, slots=True)
class EvalSample:
    """One sample of the data set.

    Attributes:
        index: in the data set, from 0
        digest: hash of its inputs and targets
        variants: in the order of the job
        reference: values of the user's metric for the reference
        error: why the reference did not run, empty otherwise
    """

    index: int
    digest: str
    variants: tuple[VariantSample, ...]
    reference: Mapping[str, float | None] = field(default_factory=dict[str, "float | None"])
    error: str = ""


@dataclass(frozen=True, slots=True)
class EvalSettings:
    """The subject of an evaluation.

    Attributes:
        key: parts and their hashes; samples of other ones are not reused
        names: of the variants
        programs: their files
        methods: of the variants
        data: the data source
        metric: the user's metric as ``FILE.py:NAME``, empty without one
        reference: description of the reference of the outputs
        reference_variant: index of the variant that is the reference, -1 for none
        notes: sentences about the reference
        total: number of samples of the data set, None while unknown
    """

    key: Mapping[str, str]
    names: tuple[str, ...]
    programs: tuple[str, ...]
    methods: tuple[str, ...]
    data: str
    metric: str
    reference: str
    reference_variant: int = -1
    notes: tuple[str, ...] = ()
    total: int | None = None

    @property
    def text(self) -> str:
        """Return it as JSON."""
        return json.dumps({"eval": VERSION, **to_json(self)}, ensure_ascii=False, indent=1) + "\n"


@dataclass(frozen=True, slots=True)
class EvalState:
    """Settings and finished samples of an evaluation.

    Attributes:
        settings: what it is of
        samples: finished ones by index
        restart: why samples of an earlier call are not used, a sentence or empty
        repeated: number of samples that run again, since a variant had crashed its worker
    """

    settings: EvalSettings
    samples: Mapping[int, EvalSample] = field(default_factory=dict[int, EvalSample])
    restart: str = ""
    repeated: int = 0


def read_settings(folder: Path) -> EvalSettings:
    """Return the settings in the folder of an evaluation.

    Raises: FormatError for a file of another kind, OSError
    """
    what = "the settings of an evaluation"
    return read_versioned(folder / SETTINGS, EvalSettings, what, ("eval", VERSION), _LARGEST)


def read_evaluation(folder: Path) -> EvalState:
    """Return an evaluation, finished or not.

    The last line of a sample counts; a last line that was cut off is ignored.

    Raises: FormatError, OSError
    """
    settings = read_settings(folder)
    found: dict[int, EvalSample] = {}
    path = folder / SAMPLES
    if path.is_file():
        with path.open("rb") as lines:
            for number, line in enumerate(lines):
                if line.endswith(b"\n"):
                    one = _sample(line, f"{path}, line {number + 1}", len(settings.names))
                    found[one.index] = one
    if settings.total is not None:
        found = {index: one for index, one in found.items() if index < settings.total}
    return EvalState(settings, dict(sorted(found.items())))


def _sample(line: bytes, place: str, variants: int) -> EvalSample:
    try:
        content = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise FormatError("a sample as JSON", str(error), file=place) from error
    found = from_json(content, EvalSample, place)
    if len(found.variants) != variants:
        raise FormatError(f"{variants} variants", str(len(found.variants)), file=place)
    return found


def append_sample(folder: Path, sample: EvalSample) -> None:
    """Add a sample to those of a folder.

    Raises: OSError
    """
    line = json.dumps(to_json(sample), ensure_ascii=False) + "\n"
    with (folder / SAMPLES).open("ab") as stream:
        stream.write(line.encode("utf-8"))


def drop_cut_line(folder: Path) -> None:
    """Remove a last line that was cut off, so that the next one is whole.

    Raises: OSError
    """
    path = folder / SAMPLES
    if path.is_file():
        data = path.read_bytes()
        if data and not data.endswith(b"\n"):
            os.truncate(path, data.rfind(b"\n") + 1)
