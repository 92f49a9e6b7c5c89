"""Reference outputs against those of a run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from inspector.compat.devtools.metrics import METRICS, ComparedValue, compare_pair, plain_list
from inspector.compat.devtools.plot import bar_chart

_NO_PARTNER = "the other side has no such output"


class ComparisonResults(dict[str, "list[float | None]"]):
    """Metric name -> one value per output, or None.

    Attributes:
        compared: facts of each pair of outputs: counts of NaN and infinities, equality, notes
    """

    def __init__(self, compared: tuple[ComparedValue, ...]) -> None:
        super().__init__()
        self.compared = compared


def compare_results(
    reference_output: object,
    run_output: object,
    metrics: Sequence[str] | None = None,
    plot: bool = False,
) -> ComparisonResults:
    """Return metrics for each pair of outputs, in full precision, and print or plot them.

    Args:
        reference_output: expected outputs: tensors of torch, arrays, numbers, strings, lists, None
        run_output: outputs of a run, likewise
        metrics: some of snr, mse and cosine_similarity; all if None
        plot: write ``<metric>_output_plot.svg`` into the working folder in place of printing

    Raises: ValueError for an unknown metric
    """
    names = _names(metrics)
    reference, run = plain_list(reference_output), plain_list(run_output)
    pairs = [compare_pair(one, two, names) for one, two in zip(reference, run, strict=False)]
    alone = abs(len(reference) - len(run))
    nothing: dict[str, float | None] = dict.fromkeys(names)
    pairs += [(ComparedValue(False, note=_NO_PARTNER), nothing)] * alone
    results = ComparisonResults(tuple(facts for facts, _ in pairs))
    for name in names:
        results[name] = [values[name] for _, values in pairs]
        if plot:
            chart = bar_chart(f"Metric {name}", "Output value index", results[name])
            Path(f"{name}_output_plot.svg").write_text(chart, encoding="utf-8")
        else:
            _print(name, results[name], results.compared)
    return results


def _names(metrics: Sequence[str] | None) -> tuple[str, ...]:
    unknown = [name for name in metrics or () if name not in METRICS]
    if unknown:
        raise ValueError(f"unknown metric {unknown[0]!r}; known are {', '.join(METRICS)}")
    return tuple(name for name in METRICS if metrics is None or name in metrics)


def _print(name: str, values: list[float | None], compared: tuple[ComparedValue, ...]) -> None:
    lines = [name, "-" * 20]
    for index, (value, facts) in enumerate(zip(values, compared, strict=True)):
        shown = f"{value:.9g}" if value is not None else f"none ({facts.note})"
        lines.append(f"{index:<5}{shown}{_special_values(facts)}")
    print("\n".join(lines), end="\n\n\n")  # noqa: T201 - the documented output


def _special_values(facts: ComparedValue) -> str:
    counts = (
        ("NaN in reference", facts.nan_reference),
        ("NaN in run", facts.nan_run),
        ("infinite in reference", facts.inf_reference),
        ("infinite in run", facts.inf_run),
    )
    found = ", ".join(f"{count} {label}" for label, count in counts if count)
    return f"  ({found} of {facts.elements})" if found else ""
