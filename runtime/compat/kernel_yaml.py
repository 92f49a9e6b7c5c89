"""Kernel libraries declared in yaml files: operators, kernels, and their kernel keys.

An entry has `op` (an operator that torch knows) or `func` (a whole schema), and `kernels`, each
with the name of a function and the dtypes and dim orders that it supports, by the aliases of the
entry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias, cast

from runtime.errors import ExecutionError, invalid_argument
from runtime.kernels import TABLE
from runtime.kernels.registry import KernelRegistry
from runtime.untyped import parse_schema
from schema.dtypes.scalar_type import BY_NAME

Source: TypeAlias = Path | str | bytes | BinaryIO
DEFAULT_KEY = "default"
# products of alias lists grow exponentially; files are from users
_MOST_KEYS, _MOST_BYTES, _MOST_DIMENSIONS = 4096, 16 << 20, 16
_TORCH_NAMES = {
    "byte": "uint8",
    "char": "int8",
    "short": "int16",
    "int": "int32",
    "long": "int64",
    "half": "float16",
    "float": "float32",
    "double": "float64",
    "complexhalf": "complex32",
    "complexfloat": "complex64",
    "complexdouble": "complex128",
}


@dataclass(frozen=True, slots=True)
class DeclaredKernel:
    """A function that computes an operator.

    Attributes:
        name: of the function, as in ``torch::executor::add_out``
        keys: of its tensors, ``v1/<dtype>;<dim order>|...`` each, or ``default`` for all
    """

    name: str
    keys: tuple[str, ...] = (DEFAULT_KEY,)


@dataclass(frozen=True, slots=True)
class DeclaredOperator:
    """An operator of a library.

    Attributes:
        name: full name, with namespace and overload
        schema: as in the file, empty for an operator of torch
        kernels: in the order of the file
    """

    name: str
    schema: str
    kernels: tuple[DeclaredKernel, ...]


@dataclass(frozen=True, slots=True)
class KernelLibrary:
    """The operators of a yaml file.

    Attributes:
        operators: in the order of the file
        file: its path, empty for bytes
    """

    operators: tuple[DeclaredOperator, ...]
    file: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """Return the full names of the operators, sorted."""
        return tuple(sorted(one.name for one in self.operators))

    @property
    def missing(self) -> tuple[str, ...]:
        """Return the operators without a built-in kernel."""
        return tuple(name for name in self.names if name not in TABLE)

    def over(self, other: KernelLibrary) -> KernelLibrary:
        """Return both libraries merged; where both have an operator, this one's kernels run."""
        own = {one.name for one in self.operators}
        more = tuple(one for one in other.operators if one.name not in own)
        return KernelLibrary(self.operators + more, self.file)

    def register(
        self, registry: KernelRegistry, functions: Mapping[str, Callable[..., Any]]
    ) -> tuple[str, ...]:
        """Register functions for the operators with a schema; return the names of the operators.

        A kernel with keys is registered for each of them.

        Args:
            registry: of a runtime
            functions: by the name of the kernel, with or without its namespaces

        Raises: ExecutionError for an invalid schema, a registered name, or a function that no
            operator of the library names
        """
        found: dict[tuple[str, str], tuple[str, Callable[..., Any]]] = {}
        used: set[str] = set()
        for one in self.operators:
            for kernel in one.kernels if one.schema else ():
                for name in (kernel.name, kernel.name.rpartition("::")[2]):
                    if name in functions:
                        used.add(name)
                        for key in kernel.keys:
                            found.setdefault((one.name, key), (one.schema, functions[name]))
        unknown = sorted(set(functions) - used)
        if unknown:
            raise invalid_argument(f"no operator of the library is computed by {unknown[0]!r}")
        for (_, key), (schema, function) in found.items():
            registry.register(_with_namespace(schema), "" if key == DEFAULT_KEY else key)(function)
        return tuple(dict.fromkeys(name for name, _ in found))


def read_kernel_yaml(source: Source) -> KernelLibrary:
    """Return the library that a yaml file declares.

    Args:
        source: path, or bytes or file object of the file

    Raises: ExecutionError InvalidArgument naming the invalid entry; OSError
    """
    data, file = _bytes(source)
    found = _parsed(data, file)
    if found is None:
        return KernelLibrary((), file)
    if not isinstance(found, list):
        raise invalid_argument(f"{file or 'the yaml'}: expected a list of operators")
    operators: dict[str, DeclaredOperator] = {}
    for place, entry in enumerate(cast("list[Any]", found)):
        try:
            one = _operator(entry)
            if one.name in operators:
                raise invalid_argument(f"{one.name} is defined twice")
        except ExecutionError as error:
            error.reason = f"{file or 'the yaml'}, entry {place}: {error.reason}"
            raise
        operators[one.name] = one
    return KernelLibrary(tuple(operators.values()), file)


def _bytes(source: Source) -> tuple[bytes, str]:
    if isinstance(source, bytes):
        return source, ""
    if isinstance(source, Path | str):
        with open(source, "rb") as stream:
            return stream.read(_MOST_BYTES + 1), str(source)
    return source.read(_MOST_BYTES + 1), ""


def _parsed(data: bytes, file: str) -> Any:  # noqa: ANN401 - what the file holds
    import yaml

    if len(data) > _MOST_BYTES:
        raise invalid_argument(f"{file or 'the yaml'}: larger than {_MOST_BYTES:,} bytes")
    try:
        return yaml.safe_load(data)
    except (yaml.YAMLError, RecursionError, ValueError, UnicodeDecodeError) as error:
        reason = " ".join(str(error).split())
        raise invalid_argument(f"{file or 'the yaml'}: {reason or 'nested too deeply'}") from None


def _operator(entry: Any) -> DeclaredOperator:  # noqa: ANN401 - checked here
    if not isinstance(entry, Mapping):
        raise invalid_argument("expected op or func, and kernels")
    fields = cast("Mapping[Any, Any]", entry)
    given = [key for key in ("op", "func") if isinstance(fields.get(key), str)]
    if len(given) != 1:
        raise invalid_argument("expected exactly one of op and func, a string")
    text: str = fields[given[0]]
    schema = text if given[0] == "func" else ""
    name = _name(text, schema)
    kernels: Any = fields.get("kernels") or []
    if not isinstance(kernels, list):
        raise invalid_argument(f"{name}: kernels is not a list")
    types = _types(fields.get("type_alias") or {})
    orders = _orders(fields.get("dim_order_alias") or {})
    declared: list[DeclaredKernel] = []
    seen: set[str] = set()
    for kernel in cast("list[Any]", kernels):
        one = _kernel(kernel, types, orders)
        twice = seen.intersection(one.keys)
        if twice:
            raise invalid_argument(f"{name}: two kernels for {min(twice)}")
        seen.update(one.keys)
        declared.append(one)
    return DeclaredOperator(name, schema, tuple(declared))


def _with_namespace(schema: str) -> str:
    return schema if "::" in schema.partition("(")[0] else f"aten::{schema}"


def _name(text: str, schema: str) -> str:
    if not schema:
        return text if "::" in text else f"aten::{text}"
    try:
        parsed = parse_schema(_with_namespace(schema))
    except RuntimeError as error:
        reason = str(error).splitlines()[0]
        raise invalid_argument(f"{schema!r} is not a schema: {reason}") from None
    return f"{parsed.name}.{parsed.overload_name}" if parsed.overload_name else parsed.name


def _types(given: Any) -> dict[str, tuple[int, ...]]:  # noqa: ANN401 - checked here
    found: dict[str, tuple[int, ...]] = {}
    for alias, names in _pairs(given, "type_alias"):
        codes: list[int] = []
        for name in _listed(names):
            lower = str(name).lower()
            kind = BY_NAME.get(_TORCH_NAMES.get(lower, lower))
            if kind is None:
                raise invalid_argument(f"type_alias {alias}: unknown dtype {name!r}")
            codes.append(kind.code)
        found[alias] = tuple(dict.fromkeys(codes))
    return found


def _orders(given: Any) -> dict[str, tuple[str, ...]]:  # noqa: ANN401 - checked here
    """Return the dim orders of each alias, given as one or as a list."""
    found: dict[str, tuple[str, ...]] = {}
    for alias, value in _pairs(given, "dim_order_alias"):
        orders = _listed(value)
        several = bool(orders) and all(isinstance(order, list) for order in orders)
        texts: list[str] = []
        for order in orders if several else [orders]:
            if len(order) > _MOST_DIMENSIONS or sorted(map(str, order)) != sorted(
                map(str, range(len(order)))
            ):
                raise invalid_argument(f"dim_order_alias {alias}: {order} is not a dim order")
            texts.append(",".join(map(str, order)))
        found[alias] = tuple(texts)
    return found


def _pairs(given: Any, what: str) -> Iterable[tuple[str, Any]]:  # noqa: ANN401 - checked here
    if not isinstance(given, Mapping):
        raise invalid_argument(f"{what}: expected a mapping")
    return [(str(key), value) for key, value in cast("Mapping[Any, Any]", given).items()]


def _listed(value: Any) -> list[Any]:  # noqa: ANN401 - checked by the callers
    return cast("list[Any]", value) if isinstance(value, list) else [value]


def _kernel(
    given: Any,  # noqa: ANN401 - checked here
    types: Mapping[str, tuple[int, ...]],
    orders: Mapping[str, tuple[str, ...]],
) -> DeclaredKernel:
    fields: Mapping[Any, Any]
    fields = cast("Mapping[Any, Any]", given) if isinstance(given, Mapping) else {}
    name = fields.get("kernel_name")
    if not isinstance(name, str) or not name:
        raise invalid_argument("a kernel has no kernel_name")
    meta = fields.get("arg_meta")
    if meta is None:
        return DeclaredKernel(name)
    pairs: list[tuple[str, str]] = []
    for argument, spec in _pairs(meta, "arg_meta"):
        words = _listed(spec)
        if len(words) != 2 or words[0] not in types or words[1] not in orders:
            raise invalid_argument(
                f"{name}: {argument} is {spec}, not an alias of types and one of dim orders"
            )
        pairs.append((words[0], words[1]))
    return DeclaredKernel(name, _keys(name, pairs, types, orders))


def _keys(
    name: str,
    pairs: list[tuple[str, str]],
    types: Mapping[str, tuple[int, ...]],
    orders: Mapping[str, tuple[str, ...]],
) -> tuple[str, ...]:
    """Return a key for each combination of alias values, equal in all arguments."""
    used = {f"type {alias}": types[alias] for alias, _ in pairs}
    used |= {f"order {alias}": orders[alias] for _, alias in pairs}
    count = 1
    for choices in used.values():
        count *= len(choices)
    if not 0 < count <= _MOST_KEYS:
        raise invalid_argument(
            f"{name}: its aliases have {count:,} combinations, at most {_MOST_KEYS:,} are supported"
        )
    keys: list[str] = []
    for choice in product(*used.values()):
        chosen = dict(zip(used, choice, strict=True))
        arguments = (f"{chosen[f'type {t}']};{chosen[f'order {o}']}" for t, o in pairs)
        keys.append(f"v1/{'|'.join(arguments)}")
    return tuple(keys)
