"""Counter-based generators, keyed by (seed, stream name) and, in streams that are cut, a number."""

import zlib

import numpy as np
from numpy.random import Generator, Philox, SeedSequence

_WORD = (1 << 64) - 1


def _sequence(seed: int, name: str) -> SeedSequence:
    return SeedSequence([seed, zlib.crc32(name.encode())])


def stream_generator(seed: int, name: str) -> Generator:
    """Return the generator of a named stream that is drawn once per episode.

    Parameters
    ----------
    seed : int
        Seed of the episode.
    name : str
        Name of the stream.

    Returns
    -------
    numpy.random.Generator
        Independent between names and seeds.
    """
    return Generator(Philox(_sequence(seed, name)))


def stream_key(seed: int, name: str) -> int:
    """Return the key from which kernels draw the numbers of a named stream.

    Parameters
    ----------
    seed : int
        Seed of the episode.
    name : str
        Name of the stream.

    Returns
    -------
    int
        In [0, 2^63).
    """
    return int(_sequence(seed, name).generate_state(1, np.uint64)[0] >> np.uint64(1))


class NumberedStream:
    """A named stream cut into numbered pieces, each of which can be drawn by itself.

    Parameters
    ----------
    seed : int
        Seed of the episode.
    name : str
        Name of the stream.
    """

    def __init__(self, seed: int, name: str) -> None:
        self._key = _sequence(seed, name).generate_state(2, np.uint64)

    def generator(self, number: int) -> Generator:
        """Return the generator of one piece.

        Parameters
        ----------
        number : int
            Which piece, at least -2^63 and below 2^63.

        Returns
        -------
        numpy.random.Generator
            The same bits for the same number, independent between numbers.
        """
        counter = np.array((0, 0, number & _WORD, 0), dtype=np.uint64)
        return Generator(Philox(key=self._key, counter=counter))
