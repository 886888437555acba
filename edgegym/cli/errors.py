"""What counts as bad input.

Every command first reads and checks what it was given, inside ``checked_input``: there a ValueError
or an OSError is the caller's mistake. What is raised anywhere else is a fault of the program and
keeps its traceback.
"""

from collections.abc import Iterator
from contextlib import contextmanager


class BadInput(Exception):
    """The command was given something wrong; the message says what, and what would be right."""


@contextmanager
def checked_input() -> Iterator[None]:
    """Report errors of the block as bad input.

    Raises
    ------
    BadInput
        In place of a ValueError, an OSError or a missing extra.
    """
    try:
        yield
    except BrokenPipeError:
        raise  # the reader of standard output went away
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        raise BadInput(f"{where}{error.strerror or error}") from error
    except (ValueError, ModuleNotFoundError) as error:
        raise BadInput(str(error)) from error
