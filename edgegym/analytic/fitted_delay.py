"""A queue module fitted to measured waits."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgegym.analytic.queue_models import Delay, Traffic
from edgegym.analytic.queueing import delay_probability
from edgegym.world.network import checked_number, checked_numbers, checked_whole

FloatArray = NDArray[np.float64]

_MOST_SLOTS = 10**6
# A measured wait says something about the law once it is this many standard errors from 0.
_SIGNIFICANT = 5.0


@dataclass(frozen=True, eq=False, kw_only=True)
class QueueSweep:
    """Waits of one node, measured at several utilizations.

    Parameters
    ----------
    slots : int
        Requests that it serves at once.
    mean_occupancy_s : float
        Mean time that a request holds a slot.
    utilization : array_like [U]
        Rising, between 0 and 1.
    mean_wait_s, waiting_probability : array_like [U]
        Mean wait over all requests, and share of the requests that wait.
    mean_wait_error_s, waiting_probability_error : array_like [U]
        Their standard errors.

    Raises
    ------
    ValueError
        If a field breaks its rule.
    """

    slots: int
    mean_occupancy_s: float
    utilization: FloatArray
    mean_wait_s: FloatArray
    waiting_probability: FloatArray
    mean_wait_error_s: FloatArray
    waiting_probability_error: FloatArray

    def __post_init__(self) -> None:
        fields: dict[str, Any] = {
            "slots": checked_whole("slots", self.slots, 1, _MOST_SLOTS),
            "mean_occupancy_s": checked_number(
                "mean_occupancy_s", self.mean_occupancy_s, 0.0, 1e9, strict=True
            ),
        }
        size = checked_numbers("utilization", self.utilization, "[U]").size
        for name in (
            "utilization",
            "mean_wait_s",
            "waiting_probability",
            "mean_wait_error_s",
            "waiting_probability_error",
        ):
            array = checked_numbers(name, getattr(self, name), "[U]")
            if array.shape != (size,) or size == 0:
                raise ValueError(
                    f"{name} has shape {array.shape}: must be [U], one per utilization"
                )
            if not (np.isfinite(array).all() and (array >= 0).all()):
                raise ValueError(f"{name} is {array}: must be finite and at least 0")
            array.setflags(write=False)
            fields[name] = array
        rho = fields["utilization"]
        if not (rho[0] > 0 and rho[-1] < 1 and (np.diff(rho) > 0).all()):
            raise ValueError(f"utilization is {rho}: must rise, above 0 and below 1")
        if (fields["waiting_probability"] > 1).any():
            raise ValueError(
                f"waiting_probability is {fields['waiting_probability']}: must be at most 1"
            )
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    def erlang_c(self) -> tuple[FloatArray, FloatArray]:
        """Return what M/M/c would show: mean waits in seconds, probabilities of waiting ``[U]``."""
        loads = self.slots * self.utilization
        waiting = np.array([delay_probability(self.slots, load)[0] for load in loads])
        return waiting * self.mean_occupancy_s / (self.slots - loads), waiting


@dataclass(frozen=True, eq=False)
class _Factors:
    """Measured over Erlang-C, by utilization, for one number of slots."""

    slots: int
    wait: Any
    waiting: Any


@dataclass(frozen=True, eq=False)
class FittedDelayMap:
    """Waits as measured, between and beyond the measured utilizations.

    What is interpolated is the factor by which measured waits differ from those of M/M/c: it varies
    slowly, so that a few utilizations suffice, and held constant beyond the last of them the wait
    goes on as 1 / (1 - utilization), as that of any queue does. Between points it follows PCHIP
    (no overshoot). Occupancies may differ from the measured one, as waits scale with them; of
    several sweeps that counts whose number of slots is nearest by ratio.

    Make one with :meth:`fit`.
    """

    factors: tuple[_Factors, ...]

    @classmethod
    def fit(cls, *sweeps: QueueSweep) -> "FittedDelayMap":
        """Return the map through the points of one sweep, or of several for other slots.

        Parameters
        ----------
        *sweeps : QueueSweep
            Points whose mean wait is not clearly above 0 are left out.

        Raises
        ------
        ValueError
            If there is no sweep, one has no wait above its error, or two have the same slots.
        TypeError
            If one is no sweep.
        """
        if not sweeps:
            raise ValueError("sweeps is empty: must hold at least one QueueSweep")
        for sweep in sweeps:
            if not isinstance(sweep, QueueSweep):
                raise TypeError(f"sweeps holds {sweep!r}: must be QueueSweeps")
        slots = [sweep.slots for sweep in sweeps]
        if len(set(slots)) < len(slots):
            raise ValueError(f"sweeps have slots {slots}: must differ")
        return cls(tuple(_fit(sweep) for sweep in sweeps))

    def __call__(self, traffic: Traffic, /) -> Delay:
        """Return the delay under this traffic."""
        factors = min(self.factors, key=lambda item: abs(np.log(item.slots / traffic.slots)))
        load = traffic.load
        waiting = float(delay_probability(traffic.slots, load)[0])
        mean = waiting * traffic.mean_occupancy_s / (traffic.slots - load)
        rho = traffic.utilization
        return Delay(mean * factors.wait(rho), min(waiting * factors.waiting(rho), 1.0))


def _fit(sweep: QueueSweep) -> _Factors:
    mean, waiting = sweep.erlang_c()
    used = (sweep.mean_wait_s > _SIGNIFICANT * sweep.mean_wait_error_s) & (
        sweep.waiting_probability > 0
    )
    # Far below saturation the waits of many slots are too small for a float64.
    used &= (sweep.mean_wait_s > 0) & (mean > 0) & (waiting > 0)
    if not used.any():
        raise ValueError(
            f"mean_wait_s of the sweep with {sweep.slots} slots is {sweep.mean_wait_s}: "
            "must be above its error somewhere, at a utilization at which M/M/c has waits"
        )
    rho = sweep.utilization[used]
    return _Factors(
        sweep.slots,
        _Curve.through(rho, sweep.mean_wait_s[used] / mean[used]),
        _Curve.through(rho, sweep.waiting_probability[used] / waiting[used]),
    )


@dataclass(frozen=True, eq=False)
class _Curve:
    """A PCHIP curve, constant beyond its ends."""

    first: float
    last: float
    curve: Any

    @classmethod
    def through(cls, x: FloatArray, y: FloatArray) -> "_Curve":
        """Return the curve through these points."""
        from scipy.interpolate import PchipInterpolator

        if len(x) == 1:
            x, y = np.array([x[0], x[0] + 1.0]), np.array([y[0], y[0]])
        return cls(float(x[0]), float(x[-1]), PchipInterpolator(x, y))

    def __call__(self, x: float) -> float:
        """Return the value at `x`."""
        return float(self.curve(min(max(x, self.first), self.last)))


__all__ = ["FittedDelayMap", "QueueSweep"]
