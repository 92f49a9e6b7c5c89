"""What is derived from an object is derived once, and anew after a failure."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from schema.objects.identity_cache import identity_cache


class Thing:
    pass


def together(*acts: Callable[[], object]) -> None:
    threads = [threading.Thread(target=act) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()


def test_threads_that_want_one_result_wait_for_it() -> None:
    calls: list[Thing] = []
    began, go_on = threading.Event(), threading.Event()

    @identity_cache
    def derived(thing: Thing) -> object:
        calls.append(thing)
        began.set()
        assert go_on.wait(60)
        return object()

    thing = Thing()
    found: list[object] = []

    def first() -> None:
        found.append(derived(thing))

    def second() -> None:
        assert began.wait(60)
        go_on.set()
        found.append(derived(thing))

    together(first, second)
    assert calls == [thing]
    assert found[0] is found[1]


def test_result_that_needs_another_one_of_the_same_function_is_made() -> None:
    @identity_cache
    def depth(thing: Thing, level: int) -> int:
        return 0 if level == 0 else 1 + depth(thing, level - 1)

    assert depth(Thing(), 20) == 20


def test_failure_is_not_kept() -> None:
    tries: list[int] = []

    @identity_cache
    def derived(_thing: Thing) -> int:
        tries.append(1)
        if len(tries) == 1:
            raise ValueError("first")
        return len(tries)

    thing = Thing()
    with pytest.raises(ValueError, match="first"):
        derived(thing)
    assert derived(thing) == 2
    assert derived(thing) == 2
