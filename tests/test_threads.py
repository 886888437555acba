"""A crew of threads: all work is done once, errors arrive, nothing stays behind."""

import copy
import multiprocessing
import os
import threading
import time
import warnings

import pytest

from edgegym.threads import Crew


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_every_item_is_worked_on_once(threads):
    crew, done = Crew(threads), []
    for count in (0, 1, 3, 100):
        done.clear()
        crew.each(done.append, range(count))
        assert sorted(done) == list(range(count))
    crew.close()
    crew.each(done.append, range(3))
    crew.close()


def test_an_error_arrives_when_nobody_is_at_work_any_more():
    crew, at_work = Crew(3), []
    all_there = threading.Barrier(3)

    def work(item):
        at_work.append(item)
        all_there.wait(10.0)
        helper = threading.current_thread().name
        if helper.startswith("edgegym"):
            time.sleep(0.0 if helper.endswith("_0") else 0.1)
            at_work.remove(item)
            raise LookupError(helper)
        at_work.remove(item)

    with pytest.raises(LookupError, match="edgegym"):
        crew.each(work, range(3))
    assert not at_work
    crew.close()


def test_after_an_error_of_the_caller_nobody_begins_with_another_item():
    crew, begun = Crew(2), []
    caller = threading.current_thread()

    def work(item):
        begun.append(item)
        if threading.current_thread() is caller:
            raise LookupError(item)
        time.sleep(0.01)

    with pytest.raises(LookupError):
        crew.each(work, range(1000))
    assert len(begun) < 100
    crew.close()


def test_loops_within_loops_do_not_wait_for_each_other():
    crew, done = Crew(2), []

    def outer(item):
        time.sleep(0.01)
        crew.each(lambda inner: done.append((item, inner)), range(4))

    waiting = threading.Thread(target=crew.each, args=(outer, range(4)), daemon=True)
    waiting.start()
    waiting.join(20.0)
    assert not waiting.is_alive()
    assert sorted(done) == [(item, inner) for item in range(4) for inner in range(4)]
    crew.close()


@pytest.mark.skipif(
    "fork" not in multiprocessing.get_all_start_methods(), reason="this system cannot fork"
)
def test_a_forked_process_has_threads_of_its_own():
    crew = Crew(2)
    crew.each(lambda _: time.sleep(0.001), range(8))

    def child():
        names = set()
        together = threading.Barrier(2)

        def work(_):
            together.wait(10.0)
            names.add(threading.current_thread().name)

        crew.each(work, range(2))
        crew.close()
        os._exit(len(names))  # the tests' own clean-up is none of the child's business

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # that one forks beside threads
        process = multiprocessing.get_context("fork").Process(target=child)
        process.start()
    process.join(20.0)
    ended = process.exitcode
    process.kill()
    assert ended == 2
    crew.close()


def test_threads_end_with_the_crew_and_do_not_travel():
    before = threading.active_count()
    crew = Crew(3)
    crew.each(lambda _: time.sleep(0.01), range(6))
    assert threading.active_count() > before
    copied = copy.deepcopy(crew)
    crew.close()
    assert threading.active_count() == before
    copied.each(lambda _: time.sleep(0.01), range(6))
    assert threading.active_count() > before
    del copied
    deadline = time.monotonic() + 10.0
    while threading.active_count() > before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert threading.active_count() == before
