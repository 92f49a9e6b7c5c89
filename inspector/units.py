"""Formatting of numbers: three to four digits, one unit per column, exact on demand."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from numbers import Integral, Real

MISSING = "missing"
_HYPHEN, MINUS = "-", "\u2212"  # Python writes the first, text shows the second
_DIGITS = 4  # significant digits: enough to see a difference of 0.1 %
_TIME_DECIMALS = 6  # at least; a long time leaves as many to others as a nanosecond has in its unit


class Quantity(str, Enum):
    """The physical quantity of a number, which determines its units.

    Values are stored in the base unit.
    """

    TIME = "time"  # nanoseconds
    SIZE = "size"  # bytes
    TICKS = "ticks"  # a clock of unknown rate
    COUNT = "count"
    OPERATIONS = "operations"  # FLOPs
    OPERATION_RATE = "operation rate"  # FLOPs a second
    BANDWIDTH = "bandwidth"  # bytes a second
    SHARE = "share"  # 0 ... 1
    PLAIN = "plain"
    ADDRESS = "address"  # shown in hexadecimal


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit of a quantity.

    Attributes:
        symbol: follows the number, empty for counts
        factor: in base units
    """

    symbol: str
    factor: float


NS_PER_MS, NS_PER_S = 1e6, 1e9
TIME_UNITS = (Unit("ns", 1.0), Unit("µs", 1e3), Unit("ms", NS_PER_MS), Unit("s", NS_PER_S))
SIZE_UNITS = (
    Unit("B", 1.0),
    Unit("KiB", 1024.0),
    Unit("MiB", 1024.0**2),
    Unit("GiB", 1024.0**3),
)
TICK_UNITS = ("ns", "us", "ms", "s", "cycles")
"""What the ticks of a trace may be."""
TYPED_TIMES = {
    **{unit.symbol: unit.factor for unit in TIME_UNITS},
    "us": 1e3,
    "\u03bcs": 1e3,  # the Greek letter, which keyboards have beside the sign of micro
}
"""Units of time as users type them, in nanoseconds."""
TYPED_SIZES = {
    **{unit.symbol.casefold(): unit.factor for unit in SIZE_UNITS},
    "kb": 1e3,
    "mb": 1e6,
    "gb": 1e9,
}
"""Units of size as users type them, in bytes; in lower case."""
_PREFIXES = (("", 1.0), ("k", 1e3), ("M", 1e6), ("G", 1e9), ("T", 1e12))


def _decimal(symbol: str) -> tuple[Unit, ...]:
    return tuple(Unit(prefix + symbol, factor) for prefix, factor in _PREFIXES)


# peaks of machines are stated in powers of ten, also those of memory
_DECIMAL = {
    Quantity.OPERATIONS: _decimal("FLOP"),
    Quantity.OPERATION_RATE: _decimal("FLOP/s"),
    Quantity.BANDWIDTH: _decimal("B/s"),
}
_FIXED = {
    Quantity.TICKS: Unit("ticks", 1.0),
    Quantity.SHARE: Unit("%", 0.01),
    Quantity.COUNT: Unit("", 1.0),
    Quantity.PLAIN: Unit("", 1.0),
    Quantity.ADDRESS: Unit("", 1.0),
}
_BASE_SYMBOL = {
    Quantity.TIME: "ns",
    Quantity.SIZE: "B",
    Quantity.TICKS: "ticks",
    **{quantity: units[0].symbol for quantity, units in _DECIMAL.items()},
}


def units_of(quantity: Quantity) -> tuple[Unit, ...]:
    """Return the units a quantity can be shown in, smallest first."""
    if quantity is Quantity.TIME:
        return TIME_UNITS
    if quantity is Quantity.SIZE:
        return SIZE_UNITS
    return _DECIMAL.get(quantity) or (_FIXED[quantity],)


def base_symbol(quantity: Quantity) -> str:
    """Return the symbol of the unit in which values are stored, empty if it has none."""
    return _BASE_SYMBOL.get(quantity, "")


def choose_unit(quantity: Quantity, largest: float, choice: str = "auto") -> Unit:
    """Return the unit for a column: the fixed one, else the one that suits its largest value.

    The largest value gets at least one digit before the point, except that half a unit is enough
    (0.548 ms reads better beside 1.504 ms than 548 µs does).
    """
    units = units_of(quantity)
    fixed = next((unit for unit in units if unit.symbol == choice), None)
    if fixed is not None:
        return fixed
    size = abs(largest) if math.isfinite(largest) else 0.0
    fitting = [unit for unit in units if size >= 0.5 * unit.factor]
    if quantity is Quantity.SIZE or quantity in _DECIMAL:
        fitting = [unit for unit in units if size >= unit.factor]
    return fitting[-1] if fitting else units[0]


def as_number(value: object) -> float | None:
    """Return a finite number, or None if it is missing, not finite or not a number.

    Integers stay integers: beyond 2**53 a float would change them.
    """
    if not isinstance(value, float):  # most are: to ask the abstract classes takes twice as long
        if isinstance(value, Integral):
            return int(value)
        if not isinstance(value, Real):
            return None
    number = float(value)
    return number if math.isfinite(number) else None


def decimals_for(largest: float) -> int:
    """Return the number of decimals for three to four significant digits."""
    if largest <= 0.0 or not math.isfinite(largest):
        return 0
    before = max(1, math.floor(math.log10(largest)) + 1)
    return min(3, max(0, _DIGITS - before))


def number_text(value: float, decimals: int, most: int = 0) -> str:
    """Return a number with that many decimals; one too small to show is bounded.

    Args:
        value: in the unit of the column
        decimals: of the column
        most: decimals up to which a small number keeps two significant digits
    """
    if value == 0.0:
        return "0"
    size = abs(value)
    if decimals < most and size < 10.0 ** (1 - decimals):
        decimals = min(most, 1 - math.floor(math.log10(size)))
    if size < 0.5 * 10.0**-decimals:
        sign = f">{MINUS}" if value < 0 else "<"
        return f"{sign}{10.0**-decimals:.{decimals}f}"
    return with_minus(f"{value:,.{decimals}f}")


def with_minus(text: str) -> str:
    """Return the text of a number with a minus for the hyphen before it; exponents keep theirs."""
    return f"{MINUS}{text[1:]}" if text.startswith(_HYPHEN) else text


def plain_text(value: float) -> str:
    """Return a number without unit in four digits, with an exponent if that is shorter."""
    if not math.isfinite(value):
        return str(value)
    if value == int(value) and abs(value) < 1e7:
        return with_minus(f"{int(value):,}")
    return with_minus(f"{value:.{_DIGITS}g}")


Formatter = Callable[[object], str]


def column_formatter(quantity: Quantity, unit: Unit, largest: float) -> Formatter:
    """Return a function that formats the values of one column, without the unit.

    Args:
        quantity: of the values
        unit: of the column
        largest: largest absolute value of the column, in base units; decides the decimals
    """
    if quantity is Quantity.ADDRESS:
        return _address_text
    if quantity is Quantity.PLAIN:
        return _plain_or_missing
    if quantity in (Quantity.COUNT, Quantity.TICKS) or unit.symbol in ("B", "FLOP", ""):
        return _integer_text
    decimals = 1 if quantity is Quantity.SHARE else decimals_for(largest / unit.factor)
    factor = unit.factor
    most = max(_TIME_DECIMALS, round(math.log10(factor))) if quantity is Quantity.TIME else 0

    def text(value: object) -> str:
        number = as_number(value)
        return MISSING if number is None else number_text(number / factor, decimals, most)

    return text


def _address_text(value: object) -> str:
    number = as_number(value)
    return MISSING if number is None else f"{int(number):#x}"


def _plain_or_missing(value: object) -> str:
    if value is None:
        return MISSING
    if isinstance(value, Real):
        return MISSING if math.isnan(float(value)) else plain_text(float(value))
    return str(value)


def _integer_text(value: object) -> str:
    number = as_number(value)
    if number is None:
        return MISSING
    return with_minus(f"{int(number):,}" if number == int(number) else f"{number:,.1f}")


def exact_text(value: object, quantity: Quantity) -> str:
    """Return a value unrounded and in base units, as shown on hover: ``548,123 ns``."""
    number = as_number(value)
    if number is None:
        return MISSING
    if quantity is Quantity.SHARE:
        return with_minus(f"{number * 100:.6g} %")
    if quantity is Quantity.ADDRESS:
        return f"{int(number):#x} ({int(number):,})"
    symbol = base_symbol(quantity)
    text = f"{int(number):,}" if number == int(number) else repr(number)
    return with_minus(f"{text} {symbol}".rstrip())


def raw_text(value: object) -> str:
    """Return a value for TSV and CSV: unrounded, no separators, empty when missing."""
    if value is None:
        return ""
    if isinstance(value, Integral):
        return str(int(value))
    if not isinstance(value, Real):
        return str(value)
    number = float(value)
    if math.isnan(number):
        return ""
    text = str(int(number)) if number.is_integer() and abs(number) < 2**53 else repr(number)
    return f"{text} {getattr(value, 'symbol', '')}".rstrip()  # a single value includes its unit


def format_quantity(value: float | None, quantity: Quantity, choice: str = "auto") -> str:
    """Return one number with its unit, for sentences and panels: ``1.504 ms``, ``28 KiB``.

    Unlike in a column, where digits are aligned, trailing zeros are dropped.
    """
    if value is None or not math.isfinite(value):
        return MISSING
    unit = choose_unit(quantity, value, choice)
    text = column_formatter(quantity, unit, abs(value))(value)
    if "." in text and "e" not in text and text[0] not in "<>":
        text = text.rstrip("0").rstrip(".")
    return f"{text} {unit.symbol}".rstrip()


def format_time(ns: float | None, choice: str = "auto") -> str:
    """Return a duration given in nanoseconds as text with its unit."""
    return format_quantity(ns, Quantity.TIME, choice)


def format_ms(ms: float | None, choice: str = "auto") -> str:
    """Return a duration given in milliseconds, the unit of analyses, as text with its unit."""
    return format_time(None if ms is None else ms * NS_PER_MS, choice)


def format_elapsed(seconds: float, decimals: int = 0) -> str:
    """Return a time by the wall clock, as progress shows it: always seconds, digits in place."""
    return f"{seconds:,.{decimals}f} s"


def format_estimate(seconds: float) -> str:
    """Return a duration to two digits, from a hundred seconds on in minutes."""
    if seconds < 99.5:
        return format_elapsed(seconds, 0 if seconds >= 10 else 1)
    return f"{seconds / 60:,.0f} min"


def format_duration(ns: float | None, tick_ns: float, choice: str = "auto") -> str:
    """Return a measured duration with its unit; below a tick of its clock it is only bounded.

    Args:
        ns: mean over runs
        tick_ns: step of the clock, 0 for a difference of times
        choice: unit
    """
    if ns is not None and 0 <= ns < tick_ns:
        return below(tick_ns, Quantity.TIME)
    return format_time(ns, choice)


def format_total(times_ns: Sequence[float], ticks_ns: Sequence[float], choice: str = "auto") -> str:
    """Return a sum of measured durations with its unit, bounded where it is below one tick.

    Args:
        times_ns: mean over runs of each
        ticks_ns: step of the clock of each, 0 for a difference of times
        choice: unit
    """
    total = sum(times_ns)
    return format_duration(total, bound_of_total(total, ticks_ns), choice)


def bound_of_total(total_ns: float, ticks_ns: Sequence[float]) -> float:
    """Return the upper bound of a sum below one tick of its clocks, else 0."""
    return sum(ticks_ns) if 0 <= total_ns < max(ticks_ns, default=0.0) else 0.0


def below(bound: float, quantity: Quantity) -> str:
    """Return the words for a value that is only known to be smaller: ``< 1 µs``."""
    text = format_quantity(bound, quantity)
    return text if text.startswith("<") else f"< {text}"


def format_bytes(size: float | None, choice: str = "auto") -> str:
    """Return a number of bytes as text with its unit."""
    return format_quantity(size, Quantity.SIZE, choice)


def format_share(share: float | None) -> str:
    """Return a fraction of one as a percentage."""
    return format_quantity(share, Quantity.SHARE)


def format_change(ratio: float) -> str:
    """Return how far a ratio is from one, with its sign: ``+4.7 %``, ``−12.3 %``."""
    text = format_share(abs(ratio - 1))
    sign = "" if text[0] == "<" or ratio == 1 else "+" if ratio > 1 else "−"
    return f"{sign}{text}"
