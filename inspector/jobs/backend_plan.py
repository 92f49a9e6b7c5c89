"""Which share of a model each backend would take, as a job for a worker."""

from __future__ import annotations

from dataclasses import dataclass

from inspector.recipes.compile_job import CompileJob

ANY = "any"  # dtypes of an operator whose table names none
NO_TABLE = "no table here lists them: its compiler decides node by node"


@dataclass(frozen=True, slots=True)
class BackendPlanJob:
    """A request: each backend alone partitions the programs of a compile; nothing is written.

    Attributes:
        compile: whose source, rules and quantization
        backends: partitioners with options, as in recipes
    """

    compile: CompileJob
    backends: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BackendShare:
    """The nodes of a method that a backend would take.

    Attributes:
        backend: partitioner as in the request
        method: empty where it failed
        nodes: that compute
        taken: of them, by the backend
        partitions: how many delegates
        reasons: why not the rest, the most frequent first, with the number of nodes
        error: why it cannot be planned, empty if it can
    """

    backend: str
    method: str = ""
    nodes: int = 0
    taken: int = 0
    partitions: int = 0
    reasons: tuple[str, ...] = ()
    error: str = ""

    @property
    def share(self) -> float:
        """Return the share of nodes that it takes."""
        return self.taken / self.nodes if self.nodes else 0.0


@dataclass(frozen=True, slots=True)
class BackendCardJob:
    """A request for the lists in a vendor's own tables, which are imported in a worker.

    Attributes:
        name: of the backend
    """

    name: str


@dataclass(frozen=True, slots=True)
class BackendOption:
    """An option of a partitioner, with the values it takes; empty for any."""

    name: str
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BackendFacts:
    """The lists in a vendor's own tables.

    Attributes:
        options: of its partitioner
        operators: that it takes, each with the dtypes; empty if it has no such table
        error: why options cannot be read, empty if they can
    """

    options: tuple[BackendOption, ...] = ()
    operators: tuple[tuple[str, str], ...] = ()
    error: str = ""

    def option_words(self) -> str:
        """Return the options in one line, with their values."""
        words = (f"{one.name}={'|'.join(one.values)}".rstrip("=") for one in self.options)
        return self.error or "; ".join(words) or "none"

    def operator_words(self) -> str:
        """Return the operators in one line, with the dtypes of those that do not take any."""
        names = (name if of == ANY else f"{name} ({of})" for name, of in self.operators)
        counted = f"{len(self.operators)}: " if self.operators else ""
        return counted + ", ".join(names) or (self.error or NO_TABLE)


@dataclass(frozen=True, slots=True)
class BackendPlan:
    """The shares of all backends."""

    rows: tuple[BackendShare, ...] = ()
