"""Queue modules: how long requests wait at a node, given what arrives there.

A module is a callable from the traffic of one node to its delay. Pass one as ``queue`` to
:func:`edgegym.analytic.solve_equilibrium`; the default, :class:`ErlangC`, is compiled into the
solver, any other is called.
"""

import math
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from edgegym.analytic.queueing import delay_probability
from edgegym.world.network import checked_number

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Traffic:
    """What arrives at one node of a tier; the load is less than the slots.

    Attributes
    ----------
    rate_per_s : float
        Requests per second, above 0.
    mixture : float64 [Q]
        Shares of the request types among them; sums to 1.
    occupancy_s : float64 [Q]
        Mean time that a request of each type holds a slot here.
    slots : int
        Requests served at once.
    service_scv : float
        Squared coefficient of variation that the network states for the occupancy.
    """

    rate_per_s: float
    mixture: FloatArray
    occupancy_s: FloatArray
    slots: int
    service_scv: float

    @property
    def mean_occupancy_s(self) -> float:
        """Mean occupancy over the mixture, in seconds."""
        return float(self.mixture @ self.occupancy_s)

    @property
    def load(self) -> float:
        """Offered load: slots in use on average."""
        return self.rate_per_s * self.mean_occupancy_s

    @property
    def utilization(self) -> float:
        """Offered load per slot."""
        return self.load / self.slots

    @property
    def mixture_scv(self) -> float:
        """Squared coefficient of variation over all requests.

        That of a mixture whose types each vary by `service_scv` around their own mean.
        """
        mean = self.mean_occupancy_s
        square = (1.0 + self.service_scv) * float(self.mixture @ self.occupancy_s**2)
        return max(square / (mean * mean) - 1.0, 0.0)


class Delay(NamedTuple):
    """Wait before service: it exceeds w with probability ``waiting * exp(-decay * w)``."""

    mean_wait_s: float
    """Mean over all requests; infinite where the queue is unstable."""
    waiting_probability: float
    """Share of the requests that wait."""
    decay_per_s: float | None = None
    """Without it ``waiting_probability / mean_wait_s``, which is what the mean asks for."""


@runtime_checkable
class QueueModel(Protocol):
    """What a queue module must be: a function, or an object that can be called.

    It should be continuous, and rise with the rate; it may return a :class:`Delay`, or a plain pair
    of mean wait and probability of waiting.
    """

    def __call__(self, traffic: Traffic, /) -> Delay | tuple[float, float]:
        """Return the delay under this traffic."""
        ...


@dataclass(frozen=True)
class ErlangC:
    """M/M/c with the mean occupancy of the mixture [17]-[20]; the default.

    The wait scales by ``(1 + service_scv) / 2`` of the network (Allen-Cunneen).
    """

    def __call__(self, traffic: Traffic, /) -> Delay:
        """Return the delay under this traffic."""
        return _allen_cunneen(traffic, traffic.service_scv)


@dataclass(frozen=True)
class MixedService:
    """M/G/c by Allen and Cunneen, with the variation that the mixture of types really has.

    :class:`ErlangC` takes the occupancy of all requests together to vary by the network's
    `service_scv`. Here that is how each type varies around its own mean, and the differences
    between the types come on top. Exact for one slot (Pollaczek-Khinchine).
    """

    def __call__(self, traffic: Traffic, /) -> Delay:
        """Return the delay under this traffic."""
        return _allen_cunneen(traffic, traffic.mixture_scv)


def _allen_cunneen(traffic: Traffic, scv: float) -> Delay:
    load = traffic.load
    waiting = float(delay_probability(traffic.slots, load)[0])
    decay = (traffic.slots - load) / traffic.mean_occupancy_s / ((1.0 + scv) / 2.0)
    return Delay(waiting / decay, waiting, decay)


@dataclass(frozen=True)
class CheckedQueue:
    """A queue module whose answers are checked, and which saturated queues never reach."""

    model: QueueModel
    name: str = field(init=False)

    def __post_init__(self) -> None:
        if not callable(self.model) or isinstance(self.model, type):
            raise TypeError(f"queue is {self.model!r}: must be a QueueModel such as ErlangC()")
        object.__setattr__(self, "name", getattr(self.model, "__name__", repr(self.model)))

    def delay(self, rates: FloatArray, occupancy_s: FloatArray, slots: int, scv: float) -> Delay:
        """Return the delay at a node that these rates ``[Q]`` of each type reach.

        Raises
        ------
        ValueError
            If the module returns what is no delay.
        """
        total = float(rates.sum())
        if total <= 0.0:
            return Delay(0.0, 0.0, slots / float(occupancy_s.mean()))
        if float(rates @ occupancy_s) >= slots:
            return Delay(math.inf, 1.0, 0.0)
        traffic = Traffic(total, rates / total, occupancy_s, slots, scv)
        return self._checked(self.model(traffic), traffic)

    def _checked(self, answer: object, traffic: Traffic) -> Delay:
        where = f"queue {self.name} at utilization {traffic.utilization:.6g}"
        if not (isinstance(answer, tuple) and len(answer) in (2, 3)):
            raise ValueError(
                f"{where} returns {answer!r}: must be a Delay, or (mean wait, probability of "
                "waiting)"
            )
        if answer[0] == math.inf:
            return Delay(math.inf, 1.0, 0.0)
        mean = checked_number(f"{where}: mean_wait_s", answer[0], 0.0, 1e300)
        waiting = checked_number(f"{where}: waiting_probability", answer[1], 0.0, 1.0)
        decay = answer[2] if len(answer) == 3 else None
        if decay is not None:
            return Delay(mean, waiting, checked_number(f"{where}: decay_per_s", decay, 0.0, 1e300))
        if mean > 0.0:
            return Delay(mean, waiting, waiting / mean)
        # Nobody waits: any decay describes it; that of the spare capacity is at least continuous.
        return Delay(0.0, 0.0, (traffic.slots - traffic.load) / traffic.mean_occupancy_s)


__all__ = ["Delay", "ErlangC", "MixedService", "QueueModel", "Traffic"]
