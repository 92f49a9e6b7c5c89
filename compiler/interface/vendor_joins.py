"""What a vendor's payload and the program have in common, noted while its passes run."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Protocol

from torch.export import ExportedProgram

from compiler.innermost import telling_exits
from compiler.interface.inherited_handles import Handles, HandlesBefore, inheriting
from compiler.interface.passed_handles import NodesBefore, following, marked, represented
from schema.backends import resolve
from schema.vendors.table import vendors_of


class Written(Protocol):
    """What a vendor's serializer has written, by the identifiers of its payload."""

    def of_payload(self, backend_id: str, data: bytes) -> Handles | None:
        """Return debug handles of a payload of a vendor that has no map, else None."""
        ...

    def calls(self) -> Mapping[str, Any]:
        """Return the call that each operator of the payload computes, as far as known."""
        ...


@dataclass(frozen=True, slots=True)
class VendorJoins:
    """The nodes of a program before a vendor's passes, and what its serializer wrote for them."""

    backend_id: str
    before: HandlesBefore
    nodes: NodesBefore
    written: Written | None

    def of(
        self, data: bytes, handles: Handles | None
    ) -> tuple[Handles | None, Mapping[str, Sequence[str]] | None]:
        """Return debug handles and names of recorded nodes, by identifiers of a payload.

        Args:
            data: the payload
            handles: the map of the vendor, None without one
        """
        names: dict[str, tuple[str, ...]] = {}
        if self.written is not None:
            if handles is None:
                handles = self.written.of_payload(self.backend_id, data)
            found = {key: represented(one, self.nodes) for key, one in self.written.calls().items()}
            names = {key: own for key, own in found.items() if own}
        return self.before.completed(handles, self.backend_id), names or None


@contextlib.contextmanager
def following_vendor(
    backend_id: str, program: ExportedProgram
) -> Generator[VendorJoins, None, None]:
    """Follow the nodes of a program through the passes of a vendor's backend."""
    before, nodes = HandlesBefore(program), marked(program.graph_module)
    with (
        inheriting(program),
        following(package_interpreter()),
        _writing(backend_id) as written,
        telling_exits(),
    ):
        yield VendorJoins(backend_id, before, nodes, written)


def _writing(backend_id: str) -> AbstractContextManager[Written | None]:
    """Return the context that notes what a vendor's serializer writes, if it has one."""
    place = next((one.joins for one in vendors_of(backend_id) if one.joins), "")
    return resolve(place)() if place else nullcontext()


def package_interpreter() -> Any:  # noqa: ANN401 - a class of the package
    """Return the class by which passes of the package compute a graph again, None without it."""
    passes: Any = sys.modules.get("executorch.exir.pass_base")
    return getattr(getattr(passes, "ExportPass", None), "ExportInterpreter", None)
