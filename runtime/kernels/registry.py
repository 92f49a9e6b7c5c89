"""The kernels of a runtime: built-in ones, and those that its user registers."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

from runtime.errors import OF_SCHEMA, ErrorCode, ExecutionError, invalid_argument
from runtime.kernels import TABLE, built_in, torch_operators
from runtime.kernels.rule import Kernel, fills, is_written, kernel_of, result
from runtime.untyped import parse_schema

_ALLOWED = (
    "Tensor",
    "int",
    "bool",
    "float",
    "str",
    "Scalar",
    "ScalarType",
    "MemoryFormat",
    "Device",
    "SymInt",
)


MOST_KERNELS = 2000  # kMaxRegisteredKernels: 250 operators with 8 kernels each
_KEY = re.compile(r"v1/\d+;(\d+(,\d+)*)?(\|\d+;(\d+(,\d+)*)?)*")
_Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


class KernelRegistry:
    """Looks up kernels by the full name of their operator, and by the dtypes of its tensors.

    An operator has at most one kernel for all tensors, and any number of specialized ones: each has
    a key, ``v1/<dtype>;<dim order>|...``, with the scalar type code and dim order of each tensor of
    a call, results included. A call uses the specialized kernel with its key, else the general one.

    Args:
        only: names of the built-in kernels to offer, as a selective build does; None for all
        max_kernels: largest number of kernels, built-in ones included
    """

    def __init__(
        self, only: Collection[str] | None = None, *, max_kernels: int = MOST_KERNELS
    ) -> None:
        self._only = None if only is None else frozenset(only)
        self._custom: dict[str, Kernel] = {}
        self._specialized: dict[str, dict[str, Kernel]] = {}
        self._max_kernels = max_kernels

    @property
    def operator_names(self) -> set[str]:
        """Return the names of all operators with a kernel."""
        inside = TABLE if self._only is None else self._only.intersection(TABLE)
        return {*inside, *self._custom, *self._specialized}

    def kernel_keys(self, name: str) -> tuple[str, ...]:
        """Return the keys of an operator's specialized kernels, in the order of registration."""
        return tuple(self._specialized.get(name, ()))

    def find(self, name: str) -> Kernel | None:
        """Return the kernel of an operator for all tensors, None if not registered."""
        if name in self._custom:
            return self._custom[name]
        if self._only is not None and name not in self._only:
            return None
        return built_in(name)

    def find_for(self, name: str, keys: Sequence[str]) -> Kernel | None:
        """Return the specialized kernel with one of these keys, else the general one."""
        specialized = self._specialized.get(name, {})
        chosen = next((specialized[key] for key in keys if key in specialized), None)
        return self.find(name) if chosen is None else chosen

    def any_of(self, name: str) -> Kernel | None:
        """Return some kernel of an operator, general or specialized; None if it has none."""
        return self.find(name) or next(iter(self._specialized.get(name, {}).values()), None)

    def register(self, schema: str, kernel_key: str = "") -> _Decorator:
        """Return a decorator that registers a function as the kernel of an out variant.

        The function takes the arguments of the schema without the out arguments, and returns the
        results to be stored in them. An argument that is marked as written, such as
        ``Tensor(a!) x``, is changed in place; such a kernel may return nothing:
        ``my::fill(Tensor(a!) x, float by) -> ()``.

        Args:
            schema: as in ``my::scaled.out(Tensor self, float by, *, Tensor(a!) out) -> Tensor(a!)``
            kernel_key: tensors that it supports, empty for all

        Raises: ExecutionError for an invalid schema or key, a registered name or key, or more
            kernels than allowed
        """
        name = self._free_name(schema, kernel_key)

        def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
            rule = result(function, schema[schema.index("(") :])
            self._add(kernel_of(name, rule), kernel_key)
            return function

        return decorate

    def register_filling(self, schema: str, kernel_key: str = "") -> _Decorator:
        """Return a decorator that registers a function as the kernel of an out variant.

        The function takes all arguments of the schema and writes to those that are its results,
        which have the shapes of the plan.

        Args:
            schema: as in ``my::scaled.out(Tensor self, float by, *, Tensor(a!) out) -> Tensor(a!)``
            kernel_key: tensors that it supports, empty for all

        Raises: ExecutionError as `register` does, or for a written argument that is not a result
        """
        name = self._free_name(schema, kernel_key)
        arguments: list[Any] = list(parse_schema(schema).arguments)
        outs = [entry.name for entry in arguments if entry.is_out]
        if not outs or any(is_written(entry) and not entry.is_out for entry in arguments):
            raise _bad_schema("a kernel that fills its results must not write to other arguments")

        def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
            def run(*args: Any, **named: Any) -> None:  # noqa: ANN401
                given, slots = args[: -len(outs)], args[-len(outs) :]
                results = {out: slot.tensor for out, slot in zip(outs, slots, strict=True)}
                function(*given, **named, **results)

            rule = fills(run, schema[schema.index("(") :])
            self._add(kernel_of(name, rule), kernel_key)
            return function

        return decorate

    def adopt_torch(self, operators: str | Iterable[str] | None = None) -> tuple[str, ...]:
        """Register operators that a library has registered with torch, as kernels of programs.

        An operator runs by its own implementation for CPU tensors.

        Args:
            operators: names of overloads (``llama::custom_sdpa.out``), operators
                (``llama::custom_sdpa``) or namespaces (``llama``); None for everything that is
                not torch's own

        Returns: full names of the overloads that now have a kernel

        Raises: ExecutionError NotFound for a name unknown to torch, InvalidArgument for one that
            no program can call
        """
        if operators is None:
            known = torch_operators.of_libraries(torch_operators.operator_names())
            return self.adopt(known)
        requested = [operators] if isinstance(operators, str) else list(operators)
        found = {name: torch_operators.matching(name) for name in requested}
        every = {overload for overloads in found.values() for overload in overloads}
        adopted = self.adopt(every)
        for name, overloads in found.items():
            if all(self.find(one) is None for one in overloads):
                raise invalid_argument(
                    f"no program can call {name}: none of {', '.join(sorted(overloads))} writes to "
                    "an out argument or in place"
                )
        return adopted

    def adopt(self, names: Iterable[str]) -> tuple[str, ...]:
        """Register the operators of torch that a program can call: out variants and in-place ones.

        An out variant runs through its functional variant if that has the same arguments, else
        directly over the memory of its results. Operators that a program cannot call, or that have
        a
        kernel, are skipped.

        Args:
            names: full names, as ``my::scaled.out``

        Returns: the names that now have a kernel
        """
        return tuple(name for name in sorted(names) if self._adopted(name))

    def _adopted(self, name: str) -> bool:
        known = self.find(name) is not None
        overload = None if known else torch_operators.overload_named(name)
        if overload is None:
            return False
        schema = overload._schema
        has_outs = any(entry.is_out for entry in schema.arguments)
        run = torch_operators.functional_variant(overload) if has_outs else overload
        try:
            if run is not None:
                self.register(str(schema))(run)
            else:
                self.register_filling(str(schema))(overload)
        except ExecutionError as error:
            if error.code is not ErrorCode.InvalidArgument:
                raise
            return False  # no program can call it
        return True

    def _add(self, kernel: Kernel, key: str) -> None:
        if self._count() >= self._max_kernels:
            raise ExecutionError(
                ErrorCode.RegistrationExceedingMaxKernels,
                f"{kernel.name} would exceed the limit of {self._max_kernels} kernels",
                remedy="Offer fewer built-in kernels (Runtime(operators=...)), or allow more "
                "(Runtime(max_kernels=...)).",
            )
        if key:
            self._specialized.setdefault(kernel.name, {})[key] = kernel
        else:
            self._custom[kernel.name] = kernel

    def _count(self) -> int:
        inside = TABLE if self._only is None else self._only.intersection(TABLE)
        return len(inside) + len(self._custom) + sum(map(len, self._specialized.values()))

    def _free_name(self, schema: str, key: str) -> str:
        """Return the name in a schema.

        Raises: ExecutionError for an invalid or registered schema or key
        """
        name = checked_name(schema)
        if key and not _KEY.fullmatch(key):
            raise invalid_argument(
                f"{key!r} is not a kernel key",
                remedy="A kernel key reads as v1/6;0,1|6;0,1: dtype and dim order of each tensor.",
            )
        taken = key in self._specialized.get(name, {}) if key else self.find(name) is not None
        if taken:
            scope = f" for {key}" if key else ""
            raise ExecutionError(
                ErrorCode.RegistrationAlreadyRegistered, f"{name} already has a kernel{scope}"
            )
        return name

    def missing(self, names: Iterable[str]) -> list[str]:
        """Return the names without a kernel, sorted."""
        return sorted({name for name in names if self.any_of(name) is None})


def checked_name(schema: str) -> str:
    """Return the full name in the schema of a custom kernel.

    Raises: ExecutionError InvalidArgument with the rule that the schema breaks
    """
    try:
        parsed = parse_schema(schema)
    except RuntimeError as error:
        reason = str(error).splitlines()[0]
        raise _bad_schema(f"{schema!r} is not a schema: {reason}") from None
    if "::" not in parsed.name:
        raise _bad_schema(f"{parsed.name!r} has no namespace")
    arguments: list[Any] = list(parsed.arguments)
    outs = [entry for entry in arguments if entry.is_out]
    silent = not outs and not parsed.returns and any(map(is_written, arguments))
    last = bool(outs) and arguments[-len(outs) :] == outs
    if not silent and not (last and all(out.kwarg_only for out in outs)):
        raise _bad_schema("a custom kernel must have its out arguments last and keyword-only")
    for entry in arguments:
        kind = _plain(str(getattr(entry, "real_type", entry.type)))
        if kind not in _ALLOWED:
            raise _bad_schema(f"argument {entry.name!r} is of type {kind}")
    for entry in parsed.returns:
        if str(entry.type) != "Tensor":
            raise _bad_schema(f"it returns {entry.type}, but only tensors can be returned")
    return f"{parsed.name}.{parsed.overload_name}" if parsed.overload_name else parsed.name


def _bad_schema(reason: str) -> ExecutionError:
    return invalid_argument(reason, remedy=OF_SCHEMA)


def _plain(kind: str) -> str:
    for wrapper in ("Optional[", "List["):
        while kind.startswith(wrapper):
            kind = kind[len(wrapper) :].removesuffix("]")
    kind = kind.rstrip("?").removesuffix("[]").rstrip("?")
    return "Scalar" if kind == "number" else kind
