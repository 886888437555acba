"""A few threads that share the rounds of a loop whose work is done by compiled code."""

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

_MOST_BY_DEFAULT = 4


def checked_threads(num_threads: int | None) -> int:
    """Return a number of threads; the available cores, at most 4, for None.

    Raises
    ------
    ValueError
        If it is no whole number of at least 1.
    """
    if num_threads is None:
        affinity = getattr(os, "sched_getaffinity", None)
        cores = len(affinity(0)) if affinity else os.cpu_count() or 1
        return min(cores, _MOST_BY_DEFAULT)
    whole = isinstance(num_threads, int) and not isinstance(num_threads, bool)
    if not whole or num_threads < 1:
        raise ValueError(f"num_threads is {num_threads!r}: it must be at least 1")
    return num_threads


class Crew:
    """Threads that stay, for loops whose rounds share nothing that they change.

    Parameters
    ----------
    num_threads : int
        Threads at work, the caller's included; with 1 there is no other.
    """

    def __init__(self, num_threads: int) -> None:
        self.num_threads = num_threads
        self._pool: ThreadPoolExecutor | None = None
        self._process = 0

    def each(self, work: Callable[[Any], None], items: Iterable[Any]) -> None:
        """Call ``work(item)`` for every item; an error in one reaches the caller.

        Whoever is free takes the next, so the order is open: results must not depend on it. When
        this returns or raises, no thread is at work any more.
        """
        waiting = list(items)
        turns = iter(waiting)  # taking from a shared list iterator is atomic
        helpers = [
            self._threads().submit(_take, work, turns)
            for _ in range(min(self.num_threads, len(waiting)) - 1)
        ]
        try:
            _take(work, turns)
        finally:
            for _ in turns:
                pass  # after an error nobody begins with another item
            # Those that have not begun by now are not waited for: there is nothing left for them.
            busy = [helper for helper in helpers if not helper.cancel()]
            wait(busy)
        for helper in busy:
            helper.result()

    def _threads(self) -> ThreadPoolExecutor:
        # A forked process inherits the pool, but none of its threads.
        if self._pool is None or self._process != os.getpid():
            self._pool = ThreadPoolExecutor(self.num_threads - 1, thread_name_prefix="edgegym")
            self._process = os.getpid()
        return self._pool

    def close(self) -> None:
        """End the threads; a later loop starts new ones."""
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None

    def __getstate__(self) -> dict[str, Any]:
        # Threads do not travel: a copy starts its own.
        return {"num_threads": self.num_threads, "_pool": None, "_process": 0}


def _take(work: Callable[[Any], None], turns: Iterator[Any]) -> None:
    for item in turns:
        work(item)
