"""Options in words: what a vendor knows, the values it takes, and errors that list them."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping
from typing import Any

_MOST = 40  # values that an error lists
_WORDS: Mapping[str, bool] = {"true": True, "false": False, "yes": True, "no": False}
Creator = Callable[[], Any]


class OptionError(ValueError):
    """An option that a vendor does not know, or a value that it does not take."""


class VendorOptions:
    """The options of a user, read by name; what is read is what the vendor knows.

    Attributes:
        known: the values that each option takes, in words; empty for any
    """

    def __init__(self, vendor: str, given: Mapping[str, Any]) -> None:
        """Store options.

        Args:
            vendor: its name in errors
            given: values by name
        """
        self._vendor = vendor
        self._given = dict(given)
        self.known: dict[str, tuple[str, ...]] = {}

    def text(self, name: str, default: Any = None, values: Iterable[str] = ()) -> Any:  # noqa: ANN401
        """Return a word.

        Args:
            name: of the option
            default: where it is not given
            values: those it may be, empty for any
        """
        self.known[name] = tuple(values)
        if name not in self._given:
            return default
        found = str(self._given[name])
        same = next((one for one in self.known[name] if one.lower() == found.lower()), "")
        if self.known[name] and not same:
            raise self._refused(name, found)
        return same or found

    def parsed(
        self,
        name: str,
        default: str,
        parse: Callable[[str], object],
        values: Iterable[str],
        more: str = "",
    ) -> str:
        """Return a word that a function of the vendor can read.

        Args:
            name: of the option
            default: where it is not given
            parse: raises ValueError for a word that cannot be read
            values: words it reads
            more: what such a word may have besides
        """
        self.known[name] = tuple(values)
        found = str(self._given.get(name, default))
        try:
            parse(found)
        except ValueError:
            raise self._refused(name, found, more) from None  # its place is the package
        return found

    def flag(self, name: str, default: Any = False) -> Any:  # noqa: ANN401
        """Return true or false."""
        self.known[name] = ("true", "false")
        found = self._given.get(name, default)
        if isinstance(found, str):
            found = _WORDS.get(found.lower(), found)
        if found is not default and not isinstance(found, bool):
            raise self._refused(name, found)
        return found

    def number(self, name: str, default: int | None = None) -> int | None:
        """Return a whole number."""
        self.known[name] = ()
        found = self._given.get(name, default)
        if found is not default and (isinstance(found, bool) or not isinstance(found, int)):
            raise self.refused(name, found, "a whole number")
        return found

    def member(
        self,
        name: str,
        kind: type[enum.Enum] | Mapping[str, Any],
        default: Any = None,  # noqa: ANN401
    ) -> Any:  # noqa: ANN401
        """Return a member of a vendor's enumeration, named by its word."""
        members: Mapping[str, Any] = kind.__members__ if isinstance(kind, type) else kind
        word = self.text(name, None, members)
        return default if word is None else members[word]

    def words(self, name: str) -> list[str]:
        """Return a list of words divided by commas."""
        self.known[name] = ()
        found: Any = self._given.get(name, ())
        listed: Iterable[Any] = found.split(",") if isinstance(found, str) else found
        return [str(one).strip() for one in listed if str(one).strip()]

    def rest(self) -> dict[str, Any]:
        """Return what no other call has read, for vendors that take any key."""
        found = {key: value for key, value in self._given.items() if key not in self.known}
        self.known.update(dict.fromkeys(found, ()))
        return found

    def check(self) -> None:
        """Check that all options were read.

        Raises: OptionError naming the option and those the vendor has
        """
        unknown = [name for name in self._given if name not in self.known]
        if unknown:
            there = ", ".join(self.known) or "none"
            raise OptionError(f"{self._vendor} has no option {unknown[0]!r}; available: {there}")

    def refused(self, name: str, found: object, expected: str) -> OptionError:
        """Return the error for a value of another form than an option has."""
        return OptionError(f"{self._vendor}: {name} cannot be {found!r}; expected {expected}")

    def _refused(self, name: str, found: object, also: str = "") -> OptionError:
        values = self.known[name]
        more = f" and {len(values) - _MOST} more" if len(values) > _MOST else ""
        listed = ", ".join(values[:_MOST])
        words = f"{self._vendor}: {name} cannot be {found!r}; available: {listed}{more}{also}"
        return OptionError(words)
