"""A name of the stock package without counterpart: it imports, and fails the test that uses it."""

from __future__ import annotations

from typing import Any

# What runs decides what a use means: files may do anything with a name while they are imported.
running = False
importing = 0
used: list[str] = []


class NameMissingError(BaseException):
    """A test used a name without counterpart. No `Exception`, so that no test expects it."""


def lenient() -> bool:
    """Tell whether code is being imported: nothing is tested then."""
    return importing > 0 or not running


class Missing:
    """Stands for a name; attributes and calls of it are names as well until a test runs."""

    def __init__(self, name: str) -> None:
        vars(self).update(_name=name, __name__=name.rsplit(".", 1)[-1], __qualname__=name)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Missing(f"{self._name}.{name}")

    def __call__(self, *args: Any, **options: Any) -> Any:
        if not lenient():
            _use(self._name)
        called_before = self._name.endswith("()")  # @name(...) leaves what it decorates
        return args[0] if called_before and len(args) == 1 else Missing(f"{self._name}()")

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[type, ...]:
        name = self._name

        def refuse(*_args: Any, **_options: Any) -> Any:
            _use(name)

        return (type("MissingBase", (), {"__new__": refuse}),)

    def __or__(self, other: Any) -> Any:
        return self

    __ror__ = __add__ = __radd__ = __mul__ = __rmul__ = __or__

    def __hash__(self) -> int:
        return id(self)

    def __deepcopy__(self, memo: Any) -> Missing:
        return self


def _use(name: str) -> None:
    used.append(name)
    raise NameMissingError(name)


def _operation(result: Any) -> Any:
    def operation(self: Missing, *_args: Any) -> Any:
        if not lenient():
            _use(self._name)
        return result() if callable(result) else result

    return operation


_RESULTS: dict[str, Any] = {
    "__bool__": False,
    "__contains__": False,
    "__enter__": None,
    "__eq__": False,
    "__exit__": None,
    "__getitem__": lambda: Missing("item"),
    "__instancecheck__": False,
    "__int__": 0,
    "__iter__": lambda: iter(()),
    "__len__": 0,
    "__setattr__": None,
    "__setitem__": None,
    "__subclasscheck__": False,
}
for _operator, _result in _RESULTS.items():
    setattr(Missing, _operator, _operation(_result))
