"""The partitioners that a toolchain has by name: what each is, and whether it is usable here."""

from __future__ import annotations

import re
from typing import Any

from inspector.recipes.compile_job import EXECUTORCH
from inspector.toolchain.child import ReportedError, ToolchainError, ask, ignore_message
from inspector.toolchain.interpreter import interpreter
from schema.backends import PACKAGES, partitioners
from schema.vendors.environments import state_here
from schema.vendors.names import flow_vendor, partitioner_vendor
from schema.vendors.table import Vendor, with_flow, with_partitioner, with_quantizer

_MISSING = re.compile(r"No module named '(?P<package>\w+)")
_NOT_PACKAGES = ("executorch",)  # of a build that left the backend out


class ListingError(Exception):
    """A failed listing; one sentence.

    Attributes:
        usage: whether the user named a wrong interpreter
    """

    def __init__(self, sentence: str, *, usage: bool) -> None:
        self.usage = usage
        super().__init__(sentence)


def stock_partitioners(python: str) -> dict[str, Any]:
    """Return the partitioners of the ``executorch`` package of an interpreter.

    Args:
        python: its path; empty for the one we run in

    Raises: ListingError
    """
    try:
        answer = ask(interpreter(python), {"do": "list"}, ignore_message)
    except ReportedError as error:
        raise ListingError(str(error), usage=False) from error
    except ToolchainError as error:
        raise ListingError(str(error), usage=error.blame == "usage") from error
    version = answer.versions.get(EXECUTORCH, "unknown")
    python = answer.versions.get("executable", python)
    tool = {"name": EXECUTORCH, "version": version, "python": python}
    rows = [_described(one) for one in answer.result["partitioners"]]
    return {"toolchain": tool, **answer.result, "partitioners": rows}


def own_partitioners() -> list[dict[str, str]]:
    """Return the partitioners of the built-in toolchain: our own, and those of vendors."""
    own = [
        {
            "alias": one.alias,
            "class": one.class_name,
            "module": one.place.partition(":")[0],
            "summary": one.summary,
            "why_not": "",
            "install": "",
        }
        for one in partitioners()
    ]
    vendors = (one for one in with_partitioner() if partitioner_vendor(one.alias) is one)
    return own + [_of_vendor(one, *state_here(one)) for one in (*vendors, *with_flow())]


def vendor_quantizers() -> list[dict[str, str]]:
    """Return the quantizers of vendors, with the missing requirements of each."""
    return [_of_vendor(one, *state_here(one)) for one in with_quantizer()]


def _of_vendor(one: Vendor, why: str, environment: str = "") -> dict[str, str]:
    where = f" (in the environment {environment})" if environment else ""
    return {
        "alias": one.alias,
        "class": one.class_name,
        "module": one.place.partition(":")[0],
        "summary": f"{one.title}: {one.hardware}{where}",
        "why_not": why,
        "install": one.install if why else "",
    }


def _described(row: dict[str, Any]) -> dict[str, str]:
    """Return a row of another interpreter with description and missing requirements."""
    alias = str(row["alias"])
    vendor = partitioner_vendor(alias) or flow_vendor(alias)
    if vendor is not None and vendor.class_name == row["class"]:
        return _of_vendor(vendor, str(row["why_not"]))
    words = str(row["module"]).removeprefix("executorch.").split(".")
    backend = next((word for word in words[1:] if word not in ("apple", "partition")), words[0])
    summary = f"{str(row['class']).removesuffix('Partitioner')}, backend {backend} of executorch"
    return {**row, "summary": summary, "install": install_of(str(row["why_not"]))}


def install_of(why_not: str) -> str:
    """Return the command that installs missing requirements, empty where none is known."""
    found = _MISSING.search(why_not)
    if found is None or found["package"] in _NOT_PACKAGES:
        return ""
    return f"pip install {PACKAGES.get(found['package'], found['package'])}"
