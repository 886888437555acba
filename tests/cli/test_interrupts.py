"""Interrupts that Python drops are noticed at the next check."""

import signal
import threading
import weakref

import pytest

from edgegym.cli.interrupts import remembered_interrupts


class _Thing:
    pass


def test_an_interrupt_in_a_finalizer_is_noticed(monkeypatch):
    dropped = []
    monkeypatch.setattr("sys.unraisablehook", dropped.append)
    with remembered_interrupts() as check:
        check()
        thing = _Thing()
        weakref.finalize(thing, lambda: None)
        reference = weakref.ref(thing, lambda _: signal.raise_signal(signal.SIGINT))
        del thing
        assert reference() is None
        assert len(dropped) == 1
        with pytest.raises(KeyboardInterrupt):
            check()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_other_interrupts_are_raised_at_once():
    with pytest.raises(KeyboardInterrupt), remembered_interrupts():
        signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_the_handler_of_somebody_else_is_left_alone():
    def mine(*_):
        pass

    before = signal.signal(signal.SIGINT, mine)
    try:
        with remembered_interrupts() as check:
            assert signal.getsignal(signal.SIGINT) is mine
            check()
    finally:
        signal.signal(signal.SIGINT, before)


def test_in_other_threads_nothing_is_changed():
    seen = []

    def work():
        with remembered_interrupts() as check:
            check()
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [signal.default_int_handler]


def test_what_fails_after_a_lost_interrupt_is_interrupted(monkeypatch):
    # As a kernel whose compilation lost one, and which then is not there.
    monkeypatch.setattr("sys.unraisablehook", lambda _: None)

    def broken():
        thing = _Thing()
        reference = weakref.ref(thing, lambda _: signal.raise_signal(signal.SIGINT))
        del thing
        assert reference() is None
        raise RuntimeError("no compiled object yet")

    with pytest.raises(KeyboardInterrupt), remembered_interrupts():
        broken()
    with pytest.raises(RuntimeError, match="of its own"), remembered_interrupts():
        raise RuntimeError("of its own")
