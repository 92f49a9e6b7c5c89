"""Environments of vendors' packages: create, list and remove them."""

from __future__ import annotations

import sys
from argparse import Namespace
from typing import Any

from inspector.cli.answer import FAILED, USAGE, Answer, CommandError, shown
from inspector.tables.machine import environment_table
from inspector.toolchain.environments import EnvironmentCreationError, install, remove
from schema.objects.plural import plural
from schema.vendors.environments import (
    Environment,
    environments,
    environments_folder,
    unfinished,
)


def install_environment(options: Namespace) -> Answer:
    """Create the environment of a backend from the package index."""
    if not options.subject:
        raise CommandError("which backend? etscope backends install NAME", USAGE)
    try:
        found = install(options.subject, _say)
    except EnvironmentCreationError as error:
        raise CommandError(str(error), FAILED) from error
    words = f"{found.name}: {plural(len(found.packages), 'package')} in {found.folder}"
    lines = [words, f"use it: --partitioner {found.name} --backend-python {found.name}"]
    return Answer({"environments": [_json(found)]}, lines=lines)


def remove_environment(options: Namespace) -> Answer:
    """Remove the environment of a backend."""
    if not options.subject:
        raise CommandError("which environment? etscope backends remove NAME", USAGE)
    try:
        found = remove(options.subject)
    except EnvironmentCreationError as error:
        raise CommandError(str(error), USAGE) from error
    return Answer({"environments": [_json(found)]}, lines=[f"removed {found.folder}"])


def list_environments(_options: Namespace) -> Answer:
    """List the environments."""
    found = environments()
    lines = [f"{plural(len(found), 'environment')} in {environments_folder()}"]
    names = [one.name for one in unfinished()]
    text = "{0} cannot be used, its installation has not ended: etscope backends remove {0}"
    lines += map(text.format, names)
    data = {"environments": [_json(one) for one in found]}
    tables = (shown(environment_table(found)),) if found else ()
    return Answer(data, lines=lines, tables=tables)


def _json(one: Environment) -> dict[str, Any]:
    return {
        "name": one.name,
        "folder": str(one.folder),
        "interpreter": str(one.python),
        "packages": list(one.packages),
        "created": one.created,
    }


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
