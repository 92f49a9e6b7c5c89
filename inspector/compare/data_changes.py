"""Differences of stored data: constants, state, named data, test cases."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from inspector.compare.change import MOST_SAMPLES, Change, Sample
from inspector.compare.sequences import align
from inspector.files.session import Session
from inspector.numerics.tensor_statistics import has_numbers
from inspector.numerics.tensors import StoredTensor
from inspector.size.constant_names import named_tensors
from schema.bundled import BundledFile, BundledSuite, BundledTensor
from schema.dtypes.scalar_type import scalar_type, to_float64

_PIECE = 1 << 22  # elements


def tensor_changes(
    old: Session, new: Session, method: str, samples: int = MOST_SAMPLES
) -> list[Change]:
    """Return the differences of a method's stored tensors.

    Those with a name are compared by name, the others in the order of their types and shapes.

    Args:
        old: on the one side
        new: on the other
        method: name
        samples: elements that differ to list of each tensor, at most
    """
    before, after = named_tensors(old, method), named_tensors(new, method)
    pairs, gone, come = _paired(before, after)
    return [
        *(Change("tensors", _title(method, one), "stored", None) for one in gone),
        *(Change("tensors", _title(method, one), None, "stored") for one in come),
        *(change for one, two in pairs for change in _tensor_pair(method, one, two, samples)),
    ]


Stored = tuple[StoredTensor, ...]
Pairing = tuple[list[tuple[StoredTensor, StoredTensor]], list[StoredTensor], list[StoredTensor]]


def _paired(before: Stored, after: Stored) -> Pairing:
    named, also = _named(before), _named(after)
    common = [name for name in named if name in also]
    pairs = [(named[name], also[name]) for name in common]
    used = {id(one) for pair in pairs for one in pair}
    gone, come = _unequal(
        [one for one in before if id(one) not in used],
        [one for one in after if id(one) not in used],
    )
    alike = align([_shape(one) for one in gone], [_shape(one) for one in come])
    pairs += [(gone[a], come[b]) for a, b in alike.pairs]
    return pairs, [gone[i] for i in alike.removed], [come[i] for i in alike.added]


def _unequal(
    left: list[StoredTensor], right: list[StoredTensor]
) -> tuple[list[StoredTensor], list[StoredTensor]]:
    """Return the tensors of each side whose content the other has not as often, in order."""
    here, there = [_content(one) for one in left], [_content(one) for one in right]
    spare, requested = Counter(there), Counter(here)
    gone: list[StoredTensor] = []
    come: list[StoredTensor] = []
    for tensors, contents, other, kept in (
        (left, here, spare, gone),
        (right, there, requested, come),
    ):
        for one, content in zip(tensors, contents, strict=True):
            if other[content]:
                other[content] -= 1
            else:
                kept.append(one)
    return gone, come


def _named(tensors: Stored) -> dict[str, StoredTensor]:
    return {one.name: one for one in tensors if one.name != f"v{one.value}"}


def _shape(one: StoredTensor) -> tuple[object, ...]:
    return (one.role, one.dtype, one.sizes)


def _content(one: StoredTensor) -> tuple[object, ...]:
    content = hashlib.sha256(one.data).digest() if one.data is not None else one.missing
    return (*_shape(one), content)


def _title(method: str, one: StoredTensor) -> str:
    return f"{method} {one.name} {one.dtype} {list(one.sizes)}"


def _tensor_pair(method: str, one: StoredTensor, two: StoredTensor, samples: int) -> list[Change]:
    what = f"{method} {one.name}"
    if _shape(one) != _shape(two):
        kinds = [f"{tensor.role} {tensor.dtype} {list(tensor.sizes)}" for tensor in (one, two)]
        return [Change("tensors", what, kinds[0], kinds[1])]
    if one.data is None or two.data is None:
        if (one.data is None) == (two.data is None):
            return []
        there = ["missing" if tensor.data is None else "stored" for tensor in (one, two)]
        note = "its .ptd file is only on one side"
        title = _title(method, one)
        return [Change("tensors", title, there[0], there[1], counts=False, note=note)]
    if one.data == two.data:
        return []
    found = _compare(one.data, two.data, one.code, max(samples, 1))
    if found is None:
        return [Change("tensors", _title(method, one), "bytes", "other bytes")]
    first, kept = found.samples[0], tuple(found.samples[:samples])
    title = _title(method, one)
    return [Change("tensors", title, first.old, first.new, note=found.words(), samples=kept)]


@dataclass(slots=True)
class _Numbers:
    """Differences of two tensors of equal type and shape."""

    count: int = 0
    different: int = 0
    largest: float = 0.0
    total: float = 0.0
    samples: list[Sample] = field(default_factory=list[Sample])

    def words(self) -> str:
        mean = self.total / self.count if self.count else 0.0
        return (
            f"{self.different:,} of {self.count:,} elements differ, first ones shown;"
            f" largest difference {self.largest:.4g}, mean {mean:.4g}"
        )


def _compare(old: memoryview, new: memoryview, code: int, samples: int) -> _Numbers | None:
    """Compare elements piece by piece; None if they are not numeric or equal."""
    item = scalar_type(code).item_bytes
    if not has_numbers(code) or len(old) != len(new) or len(old) % item:
        return None
    found = _Numbers()
    step = _PIECE * item
    for at in range(0, len(old), step):
        here, there = (
            to_float64(np.frombuffer(data[at : at + step], dtype=np.uint8), code)
            for data in (old, new)
        )
        if here is None or there is None or here.dtype.kind not in "biuf":
            return None
        one, two = here.astype(np.float64), there.astype(np.float64)
        unequal = (one != two) & ~(np.isnan(one) & np.isnan(two))
        with np.errstate(invalid="ignore"):  # infinity less infinity
            gaps = np.abs(one - two)[unequal]
        found.count += len(one)
        found.different += int(unequal.sum())
        finite = gaps[np.isfinite(gaps)]
        found.largest = max(found.largest, float(finite.max(initial=0.0)))
        found.total += float(finite.sum())
        places = np.flatnonzero(unequal)[: samples - len(found.samples)].tolist()
        start = at // item
        found.samples += [Sample(start + i, float(one[i]), float(two[i])) for i in places]
    return found if found.different else None


def named_data_changes(old: Session, new: Session) -> list[Change]:
    """Return keys only on one side, and those with other content."""
    external = bool(old.external) and bool(new.external)
    before, after = dict(_blobs(old, external)), dict(_blobs(new, external))
    found: list[Change] = []
    for key in sorted(before.keys() | after.keys()):
        one, two = before.get(key), after.get(key)
        if one is None or two is None or len(one) != len(two):
            sizes = [None if blob is None else len(blob) for blob in (one, two)]
            found.append(Change("named data", key, sizes[0], sizes[1], "bytes"))
        elif one != two:
            digests = [hashlib.sha256(blob).hexdigest()[:16] for blob in (one, two)]
            note = "as many bytes with other content"
            old_text, new_text = (f"sha256 {digest}" for digest in digests)
            found.append(Change("named data", key, old_text, new_text, note=note))
    return found


def _blobs(session: Session, external: bool) -> Iterator[tuple[str, memoryview]]:
    """Yield keys and bytes of the program, and of data files if both sides have some."""
    if session.program is not None:
        yield from session.program.named_data_map().items()
    for data in session.external if external else ():
        yield from data.blobs().items()


def bundled_changes(old: Session, new: Session, method: str = "") -> list[Change]:
    """Return test cases that differ, of one method or all, if both are bundled programs."""
    if old.bundled is None or new.bundled is None:
        return []
    before, after = _suites(old.bundled), _suites(new.bundled)
    found: list[Change] = []
    for name in sorted(before.keys() | after.keys()):
        if method not in ("", name):
            continue
        one, two = before.get(name), after.get(name)
        counts = [None if suite is None else len(suite.test_cases) for suite in (one, two)]
        if one is None or two is None or counts[0] != counts[1]:
            found.append(Change("test cases", f"cases of {name}", counts[0], counts[1]))
            continue
        other = sum(
            _case(a) != _case(b) for a, b in zip(one.test_cases, two.test_cases, strict=True)
        )
        if other:
            found.append(Change("test cases", f"cases of {name}", "one", f"{other} with others"))
    return found


def _suites(bundled: BundledFile) -> dict[str, BundledSuite]:
    return {suite.method_name: suite for suite in bundled.method_test_suites}


def _case(case: object) -> list[object]:
    values = (*getattr(case, "inputs", ()), *getattr(case, "expected_outputs", ()))
    return [
        (one.val.scalar_type, one.val.sizes, bytes(one.val.data))
        if isinstance(one.val, BundledTensor)
        else one.val
        for one in values
    ]
