"""The page docs/models.md of what was found for each architecture."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.zoo.columns import defects_of, note, rows_of, stamps_of
from tests.zoo.models import MODELS

HEAD = """# Real architectures

Networks of torchvision, timm and transformers, and small ones of the same kinds, with random
weights: compiled in four ways, run on both XNNPACK engines and on the stock runtime, compared with
what the stock compiler makes. `make zoo` measures what `zoo-output` has no results of, and writes
this page; models without results keep their rows.
Partitions alone are measured faster, into [partitions.md](partitions.md).

- *Nodes*: partitions / delegated nodes / other nodes in float32, as `get_delegation_info` of each
  tool counts them; *dynamic* and *static* are the same of our int8 programs.
- *Error*: the largest difference from eager mode as a part of the largest value. Portable kernels /
  XNNPACK by torch / XNNPACK by its own kernels (`native`) / the stock runtime with our program.
- *Int8 agreement*: the same between our engines and the stock runtime. Dynamic by torch / dynamic
  by `native` / static by torch / static by `native`. Where several partitions are joined by float
  operators, those differ in the last bit from runtime to runtime, and a value in the middle between
  two integers is rounded the other way: up to one quantum (an input moved by 1e-6 does the same).
- *Gap*: runs without a divergence / runs compared with their record (float32, dynamic, static and
  weight-only, each on portable kernels and on both XNNPACK engines), then compared outputs of
  instructions / all of them. No error is planted: whatever exceeds the tolerance is wrong.
- *Memory*: least / planned KiB of the portable program.

"""
QUANTUM = 0.02  # of the largest value, by which int8 outputs may differ where a rounding flips
_TITLES = (
    "model",
    "nodes",
    "stock nodes",
    "KiB / stock",
    "dynamic",
    "static",
    "error",
    "int8 agreement",
    "gap",
    "memory",
)


def write_page(results: Path, page: Path) -> list[str]:
    """Write the page; return what is wrong with any model.

    Models without results keep the rows that they have on the page.
    """
    rows, wrong = [], []
    before, defects = rows_of(page), defects_of(page)
    measured = [name for name in MODELS if (results / name / "ours.json").exists()]
    kept = [name for name in MODELS if name in before and name not in measured]
    left = [name for name in MODELS if name not in (*kept, *measured)]
    for name in MODELS:
        if name in measured:
            found = read(results / name)
            rows.append(f"| {' | '.join(row(name, found))} |")
            wrong += [f"{name}: {line}" for line in problems(found)]
        elif name in kept:
            rows.append(before[name])
            wrong += defects.get(name, [])
    titles = [f"| {' | '.join(cells)} |" for cells in (_TITLES, ["---"] * len(_TITLES))]
    table = note(kept, stamps_of(results, measured)) + "\n".join((*titles, *rows))
    listed = "\n".join(f"- {line}" for line in wrong) or "Nothing."
    missing = f"Not measured yet: {', '.join(left)}.\n\n" if left else ""
    page.write_text(f"{HEAD}{table}\n\n{missing}## What is wrong\n\n{listed}\n", "utf-8")
    return wrong


def read(folder: Path) -> dict[str, Any]:
    """Return what both sides left of a model."""
    found = {"ours": {}, "stock": {}, "gaps": {}}
    for side in found:
        path = folder / f"{side}.json"
        found[side] = json.loads(path.read_text()) if path.exists() else {}
    return found


def row(name: str, found: dict[str, Any]) -> list[str]:
    """Return the cells of a model."""
    ours, stock = found["ours"], found["stock"]
    ways = {way: ours.get(way, {}) for way in ("portable", "float", "dynamic", "static")}
    errors = [
        ways["portable"].get("error_of", {}).get("torch"),
        ways["float"].get("error_of", {}).get("torch"),
        ways["float"].get("error_of", {}).get("native"),
        stock.get("float", {}).get("eager"),
    ]
    agreement = [
        stock.get(way, {}).get(engine)
        for way in ("dynamic", "static")
        for engine in ("torch", "native")
    ]
    sizes = [ways["float"].get("bytes"), stock.get("stock", {}).get("bytes")]
    plan = ways["portable"].get("memory", {})
    return [
        name,
        counts(ways["float"]),
        counts(stock.get("stock", {})),
        "/".join("–" if size is None else f"{size / 1024:.0f}" for size in sizes),
        counts(ways["dynamic"]),
        counts(ways["static"]),
        amounts(errors),
        amounts(agreement),
        gap_cell(found["gaps"]),
        "/".join(f"{plan[key] / 1024:.0f}" for key in ("least", "planned") if key in plan) or "–",
    ]


def counts(found: dict[str, Any]) -> str:
    if "delegation" in found:
        return "/".join(str(count) for count in found["delegation"])
    return "refused" if "error" in found else "–"


def amounts(values: Iterable[float | None]) -> str:
    return "/".join(
        "–" if value is None else "0" if value == 0 else f"{value:.0e}" for value in values
    )


def gap_cell(found: dict[str, Any]) -> str:
    runs = [run for run in found.values() if "outputs" in run]
    if not runs:
        return "refused" if found else "–"
    right = sum(run["first_divergence"] is None for run in runs)
    compared, outputs = (sum(run[key] for run in runs) for key in ("compared", "outputs"))
    return f"{right}/{len(runs)} {compared}/{outputs}"


def problems(found: dict[str, Any]) -> list[str]:
    """Return what is wrong: errors, gaps, memory, and numbers that are far from the others."""
    lines = errors_of(found)
    for way, one in found["ours"].items():
        if "error" in one:
            continue
        lines += [
            f"{way}: plan {row[2]:,} B below {max(row):,} B" for row in one["memory"]["broken"]
        ]
        limit = 1e-5 if way in ("portable", "float") else 0.1
        lines += [
            f"{way}: {engine} is off by {error:.1e} of the largest value"
            for engine, error in one["error_of"].items()
            if not error <= limit
        ]
    for run, one in found["gaps"].items():
        if "error" in one:
            continue
        if one["first_divergence"]:
            lines.append(f"{run}: gap: {one['first_divergence']}")
        elif one["compared"] < one["outputs"]:
            lines.append(f"{run}: gap: {one['compared']} of {one['outputs']} outputs compared")
    for way, one in found["stock"].items():
        whole = found["ours"].get(way, {}).get("delegation", [1])[0] == 1
        limit = 1e-4 if whole or way in ("portable", "float") else QUANTUM
        if not one.get("native", 0) <= limit:
            lines.append(f"{way}: native is {one['native']:.1e} from the stock runtime")
    return lines


def errors_of(found: dict[str, Any]) -> list[str]:
    """Return each error once, with everything that ended with it."""
    ended: dict[str, list[str]] = {}
    for side, ways in found.items():
        for way, one in ways.items():
            if "error" in one:
                name = {"ours": "{}", "gaps": "gap of {}"}.get(side, "{} on the stock runtime")
                what = "the stock compiler" if way == "stock" else name.format(way)
                ended.setdefault(one["error"].partition(". ")[0], []).append(what)
    return [f"{', '.join(whats)}: {error}" for error, whats in ended.items()]
