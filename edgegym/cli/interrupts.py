"""Interrupts that are not lost.

Python drops a KeyboardInterrupt that is raised inside a callback from C or a finalizer ("Exception
ignored in ..."). Loading compiled kernels is full of both, so an interrupt in the first second of a
command may have no effect at all.
"""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def remembered_interrupts() -> Iterator[Callable[[], None]]:
    """Raise KeyboardInterrupt as usual, and remember that it was.

    Outside the main thread, or where somebody else handles interrupts, nothing is changed.

    Yields
    ------
    callable
        To be called now and then during long work; raises KeyboardInterrupt if one was lost.
    """
    pressed = False

    def check() -> None:
        if pressed:
            raise KeyboardInterrupt

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal pressed
        pressed = True
        signal.default_int_handler(number, frame)

    usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if not usual or threading.current_thread() is not threading.main_thread():
        yield check
        return
    signal.signal(signal.SIGINT, note)
    try:
        yield check
    except Exception:
        # A lost interrupt may leave a kernel half made, which then fails in its own way.
        check()
        raise
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
