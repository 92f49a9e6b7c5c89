"""port: scripts written for the `executorch` package, with their imports replaced by ours."""

from __future__ import annotations

import difflib
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from inspector.cli.answer import FINE, JUDGED, USAGE, Answer, CommandError, shown
from inspector.cli.options import FORMATS
from inspector.cli.output import refuse_existing, refuse_inputs, write_bytes
from inspector.cli.text import printable
from inspector.compat.porting.files import PortedFile, find_scripts, port_file
from inspector.compat.porting.port import Name
from inspector.tables.written import name_table
from schema.errors import FormatError
from schema.objects.plural import plural


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument(
        "files", nargs="+", metavar="FILE", help="scripts, notebooks (.ipynb), or folders of them"
    )
    parser.add_argument("--write", action="store_true", help="change the files in place")
    parser.add_argument(
        "-o",
        "--output",
        dest="target",
        metavar="PATH",
        help="write the ported file here; of several or of a folder, write them below this folder",
    )
    parser.add_argument("--format", choices=FORMATS, default="text", help="default: text")
    parser.add_argument("--force", action="store_true", help="replace files that exist")
    parser.add_argument(
        "-v", "--verbose", action="store_true", help="show the traceback of an error"
    )
    parser.set_defaults(output=None)


def run(options: Namespace) -> Answer:
    """Port the files; without --write and -o the changes are shown as a unified diff."""
    if options.write and options.target:
        raise CommandError(
            "--write changes the files, -o writes copies: use only one of them", USAGE
        )
    for name in options.files:
        Path(name).stat()  # a file that is not there is named before anything is written
    ported, options.unreadable = _ported(options.files)
    if not ported and not options.unreadable:
        raise CommandError("no .py or .ipynb file in these folders", USAGE)
    options.inputs = [str(one.path) for one in ported]
    written = _written(ported, options)
    code = JUDGED if any(one.ported.missing for one in ported) else FINE
    data = {
        "files": [
            {
                "file": str(one.path),
                "changed": one.changed,
                "written": str(written[one.path]) if one.path in written else None,
                "diff": "".join(_diff(one)),
            }
            for one in ported
        ],
        "names": [_as_data(one, name) for one in ported for name in one.ported.names],
        "open": sum(len(one.ported.missing) for one in ported),
    }
    rows = [list(_as_data(one, name).values()) for one in ported for name in one.ported.names]
    return Answer(
        data, tables=(shown(name_table(rows)),), code=code, document=_text(ported, written)
    )


def _ported(names: Sequence[str]) -> tuple[list[PortedFile], list[str]]:
    """Return the ported files, and a sentence for each that cannot be read."""
    found: dict[Path, PortedFile] = {}
    unreadable: list[str] = []
    for path in find_scripts(map(Path, names)):
        try:
            found.setdefault(path, port_file(path))
        except FormatError as error:
            unreadable.append(str(error))
    return list(found.values()), unreadable


def _written(ported: list[PortedFile], options: Namespace) -> dict[Path, Path]:
    """Write the results; return the path of each ported file."""
    if options.write:
        places = {one.path: one.path for one in ported if one.changed}
        force = True
    elif options.target:
        places = _places(ported, options.files, Path(options.target))
        force = bool(options.force)
    else:
        return {}
    for target in places.values():
        if not options.write:
            refuse_inputs(target, options.inputs)
        refuse_existing(target, force=force)
    for one in ported:
        if one.path in places:
            mode = one.path.stat().st_mode
            write_bytes(places[one.path], one.data, force=force)
            places[one.path].chmod(mode)
    return places


def _places(ported: list[PortedFile], names: Sequence[str], target: Path) -> dict[Path, Path]:
    """Return the destination of each file: the target itself, or a path below it."""
    if len(names) == 1 and not Path(names[0]).is_dir() and not target.is_dir():
        return {one.path: target for one in ported}
    folders = [Path(name) for name in names if Path(name).is_dir()]
    places: dict[Path, Path] = {}
    for one in ported:
        above = [folder for folder in folders if one.path.is_relative_to(folder)]
        below = one.path.relative_to(above[0]) if above else Path(one.path.name)
        places[one.path] = target / below
    twice = [path for path, count in Counter(places.values()).items() if count > 1]
    if twice:
        raise CommandError(f"two files would become {twice[0]}; port them one by one", USAGE)
    return places


def _as_data(one: PortedFile, name: Name) -> dict[str, str | int | None]:
    return {
        "file": str(one.path),
        "cell": name.cell or None,
        "line": name.line,
        "name": name.name,
        "ours": name.ours or None,
        "verdict": name.verdict.value,
        "remedy": name.remedy,
    }


def _diff(one: PortedFile) -> Iterator[str]:
    """Yield the lines of a unified diff, which `patch` reads."""
    before, after = (_lines(text) for text in (one.ported.source, one.ported.text))
    path = one.path.as_posix().lstrip("/")
    for line in difflib.unified_diff(before, after, f"a/{path}", f"b/{path}"):
        yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def _lines(text: str) -> list[str]:
    """Split at line feeds only: other ends are part of a line, as in `diff`."""
    parts = text.split("\n")
    return [f"{part}\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])


def _text(ported: list[PortedFile], written: dict[Path, Path]) -> Iterable[str]:
    """Yield the diffs, or the paths of files, then remaining work and a summary."""
    for one in ported:
        if one.path in written:
            yield f"{printable(str(written[one.path]))}: written\n"
        elif not written:
            yield from map(_shown, _diff(one))
    verdicts: Counter[str] = Counter()
    for one in ported:
        for name in one.ported.names:
            verdicts[name.verdict.value] += 1
            if name.is_open or name.remedy:
                yield f"{printable(_sentence(one.path, name))}\n"
    count = ", ".join(f"{number} {word}" for word, number in verdicts.items())
    files = plural(len(ported), "file")
    yield f"{files}: {count or 'no imports of executorch'}\n"


def _shown(line: str) -> str:
    """Return a line of a diff for a terminal; `patch` needs its tabs and its end as they are."""
    body = line.rstrip("\r\n")
    return "\t".join(map(printable, body.split("\t"))) + line[len(body) :]


def _sentence(path: Path, name: Name) -> str:
    cell = f"cell {name.cell}:" if name.cell else ""
    words = name.verdict.value + (f" -> {name.ours}" if name.ours else "")
    remedy = f" ({name.remedy})" if name.remedy else ""
    return f"{path}:{cell}{name.line}: {name.name}: {words}{remedy}"
