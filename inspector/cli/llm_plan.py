"""llm plan: which length of the context fits into memory."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import asdict
from pathlib import Path
from typing import Any

from inspector.cli.answer import USAGE, Answer, CommandError, shown
from inspector.cli.llm_files import ASKED, config_source, exported_files, read_source
from inspector.memory.plan import analyse_memory, state_values
from inspector.tables.generation import plan_table
from inspector.units import format_bytes

_POWERS = (128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768)
_MIB = 1 << 20


def run(options: Namespace) -> Answer:
    """Count the bytes of weights, cache and other planned buffers by length.

    Raises: CommandError, OSError
    """
    from compiler.errors import CompileError
    from compiler.llm.plan import plan_lengths

    source, known = _source(options)
    config = read_source(source)
    exported = config.export.max_context_length
    lengths = sorted({*(options.lengths or _POWERS), exported})
    limit = None if options.memory is None else options.memory * _MIB
    try:
        plans = plan_lengths(config, lengths)
    except CompileError as error:
        raise CommandError(f"{source.path}: {error}", USAGE) from error
    rows: list[dict[str, Any]] = []
    for one in plans:
        # other buffers grow with the length: those of an export are known, and bound shorter ones
        planned = known if one.context == exported else None
        least = one.weights + one.cache + (planned or 0)
        most = None if known is None or one.context > exported else one.weights + one.cache + known
        fits = _fits(least, most, limit)
        rows.append({**asdict(one), "planned": planned, "total": least, "fits": fits})
    return _answer(rows, limit, known is not None)


def _fits(least: int, most: int | None, limit: int | None) -> bool | None:
    """Return whether a length fits, None where that is not known."""
    if limit is not None and least > limit:
        return False
    if limit is not None and most is not None and most <= limit:
        return True
    return None


def _answer(rows: list[dict[str, Any]], limit: int | None, exported: bool) -> Answer:
    largest = max((one["context"] for one in rows if one["fits"]), default=None)
    lines: list[str] = []
    if limit is not None:
        size = format_bytes(limit)
        possible = [one["context"] for one in rows if one["fits"] is not False]
        if largest is not None:
            lines.append(f"{largest:,} positions fit into {size}")
        elif not possible:
            lines.append(f"no length fits into {size}")
        else:
            lines.append(f"weights and cache of {max(possible):,} positions fit into {size}")
    if not exported:
        lines.append("buffers other than the cache are known of an export: etscope llm plan FOLDER")
    data = {"rows": rows, "memory": limit, "largest": largest}
    return Answer(data, lines=lines, tables=(shown(plan_table(rows)),))


def _source(options: Namespace) -> tuple[Any, int | None]:
    """Return the configuration, and the planned bytes beside its cache where it was exported."""
    named = [word for word in options.words if "=" not in word]
    if not named or not (Path(named[0]).is_dir() or named[0].endswith(".pte")):
        source = config_source(options)
        options.inputs = [source.path]
        return source, None
    files = exported_files(options)
    options.inputs = [files.program]
    if files.source is None:
        raise CommandError(f"{files.program}: its configuration is not on this machine", USAGE)
    return files.source, planned_beside_state(files.program)


def planned_beside_state(path: str) -> int:
    """Return the planned bytes of all methods but those of state.

    Raises: FormatError, OSError
    """
    from schema import program

    file = program.decode(memoryview(Path(path).read_bytes()), file=path)
    total = 0
    for plan in file.plans:
        if not plan.name.startswith(ASKED):
            arenas = analyse_memory(file, plan.name).arenas
            kept = set(state_values(file, plan.name))
            held = sum(v.nbytes for a in arenas for v in a.values if v.value in kept)
            total = max(total, sum(plan.non_const_buffer_sizes) - held)
    return total
