"""llm plan: which length of the context fits into memory."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import asdict
from pathlib import Path
from typing import Any

from inspector.cli.answer import USAGE, Answer, CommandError, shown
from inspector.cli.llm_files import config_source, exported_files, read_source
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

    source, other = _source(options)
    options.inputs = [source.path]
    config = read_source(source)
    lengths = sorted({*(options.lengths or _POWERS), config.export.max_context_length})
    limit = None if options.memory is None else options.memory * _MIB
    try:
        plans = plan_lengths(config, lengths)
    except CompileError as error:
        raise CommandError(str(error), USAGE) from error
    rows: list[dict[str, Any]] = []
    for one in plans:
        total = one.weights + one.cache + other
        fits = None if limit is None else total <= limit
        rows.append({**asdict(one), "planned": other, "total": total, "fits": fits})
    most = max((one["context"] for one in rows if one["fits"]), default=None)
    data = {"rows": rows, "memory": limit, "largest": most}
    lines: list[str] = []
    if limit is not None:
        size = format_bytes(limit)
        found = "no length fits" if most is None else f"{most:,} positions fit"
        lines.append(f"{found} into {size}")
    if not other:
        lines.append("buffers other than the cache are known of an export: etscope llm plan FOLDER")
    return Answer(data, lines=lines, tables=(shown(plan_table(rows)),))


def _source(options: Namespace) -> tuple[Any, int]:
    """Return the configuration, and the planned bytes beside its cache where it was exported."""
    named = [word for word in options.words if "=" not in word]
    if not named or not (Path(named[0]).is_dir() or named[0].endswith(".pte")):
        return config_source(options), 0
    files = exported_files(options)
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
        if not plan.name.startswith(("get_", "use_", "enable_")):
            arenas = analyse_memory(file, plan.name).arenas
            kept = set(state_values(file, plan.name))
            held = sum(v.nbytes for a in arenas for v in a.values if v.value in kept)
            total = max(total, sum(plan.non_const_buffer_sizes) - held)
    return total
