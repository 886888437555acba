"""Fig. 5: the law of the wait in M/M/9 [20] against the event simulation."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgegym.analytic import wait_cdf
from edgegym.evaluation.speed import mmc_scenario
from edgegym.figures.spec import Caption, Effort, Figure, Report
from edgegym.figures.style import BLUE, GREY, ORANGE
from edgegym.figures.table import Table
from edgegym.figures.words import small
from edgegym.simulator import Fleet
from edgegym.simulator.histogram import bin_edges_s

_SEED = 0
_WARMUP_S = 1000.0
_BATCHES = 20
_LONGEST_WAIT_S = 4.0


def compute(effort: Effort, report: Report) -> Table:
    """Return the distribution of the wait at one node, by formula and by simulation.

    The standard error comes from batches that follow each other, long against the time over which
    the queue forgets.
    """
    # The radio takes no time: what the histogram of TTFT holds beyond the prefill is the wait.
    scenario = mmc_scenario().with_overrides({"radio.xi": 1e-12})
    net = scenario.tiered_network()
    slots, rate = int(net.concurrency[0]), net.request_intensity
    occupancy_s, prefill_s = net.occupancy_s.item(), net.prefill_s.item()
    fleet = Fleet(scenario, seed=_SEED)
    fleet.advance(_WARMUP_S)
    windows = []
    for batch in range(_BATCHES):
        windows.append(fleet.advance(effort.requests / _BATCHES / rate))
        report(f"{(batch + 1) * effort.requests // _BATCHES:,} requests")
    total = windows[0]
    for window in windows[1:]:
        total = total + window
    # The histogram is exact at the edges of its bins.
    wait_s = bin_edges_s()[1:-1] - prefill_s
    shown = (wait_s > 0) & (wait_s < _LONGEST_WAIT_S)
    measured = _measured(total)[shown]
    batches = np.array([_measured(window)[shown] for window in windows])
    wait_s = wait_s[shown]
    # What the run really had: its arrivals, and the slot time of each.
    arrivals_per_s = total.arrivals / total.seconds
    slot_time_s = total.busy_ticks.sum() / total.capacity_ticks.sum() * slots / arrivals_per_s
    theory = _theory(wait_s, slots, rate, 1 / occupancy_s)
    return Table(
        {
            "wait_s": wait_s,
            "probability_theory": theory,
            "probability_simulated": measured,
            "gap": measured - theory,
            "standard_error": batches.std(axis=0, ddof=1) / math.sqrt(_BATCHES),
            "gap_at_the_load_of_the_run": measured
            - _theory(wait_s, slots, arrivals_per_s, 1 / slot_time_s),
            "requests": np.full(len(wait_s), total.first_tokens),
            "slots": np.full(len(wait_s), slots),
            "utilization": np.full(len(wait_s), rate * occupancy_s / slots),
        }
    )


def _measured(window: Any) -> NDArray[np.float64]:
    return np.cumsum(window.ttft_histogram)[:-1] / window.first_tokens


def _theory(
    wait_s: NDArray[np.float64], slots: int, arrivals_per_s: float, served_per_s: float
) -> NDArray[np.float64]:
    return np.array([wait_cdf(value, slots, arrivals_per_s, served_per_s) for value in wait_s])


def draw(canvas: Any, table: Table) -> None:
    """Draw both distributions, and their gap with its noise."""
    law, gap = canvas.subplots(1, 2)
    wait_s = table["wait_s"]
    law.plot(wait_s, table["probability_theory"], color=BLUE, label="formula [20]")
    law.plot(
        wait_s,
        table["probability_simulated"],
        color=ORANGE,
        linestyle="none",
        marker=".",
        markersize=5,
        markevery=max(len(table) // 40, 1),
        label=f"event simulation, {table['requests'][0] / 1e6:.3g} million requests",
    )
    law.set_ylabel("probability that the wait is shorter")
    law.legend(loc="lower right")
    noise = 2e3 * table["standard_error"]
    gap.fill_between(wait_s, -noise, noise, color=GREY, alpha=0.25, label="± 2 standard errors")
    gap.plot(wait_s, 1e3 * table["gap"], color=BLUE, label="simulation − formula")
    gap.plot(
        wait_s,
        1e3 * table["gap_at_the_load_of_the_run"],
        color=ORANGE,
        linestyle="--",
        label="the same at the load the run had",
    )
    gap.set_ylabel("gap, in 1/1000")
    gap.legend(loc="lower right")
    gap.margins(y=0.35)
    for axes in (law, gap):
        axes.set_xlabel("wait, s")


def caption(table: Table) -> Caption:
    """State the largest gap, and how much of it is noise."""
    at = int(np.abs(table["gap"]).argmax())
    largest, error = abs(table["gap"][at]), table["standard_error"][at]
    law = table["probability_theory"][at]
    # As many independent requests would have this standard error.
    alike = float(f"{law * (1.0 - law) / error**2:.2g}")
    own_load = np.abs(table["gap_at_the_load_of_the_run"]).max()
    return Caption(
        paper=(
            "The formula for the wait [20] and an event-driven M/M/9 queue at a utilisation of "
            "about 0.82 agree; no number is given."
        ),
        here=(
            f"M/M/{table['slots'][0]:.0f} at a utilisation of {table['utilization'][0]:.2f} in "
            f"edgegym's own simulator (one node, radio without delay), "
            f"{table['requests'][0] / 1e6:.3g} million requests: the largest gap is "
            f"{small(largest)}, at a wait of {table['wait_s'][at]:.2f} s, where the standard error "
            f"is {small(error)}. At the arrival rate and slot time that the run really had, the "
            f"largest gap is {small(own_load)}."
        ),
        difference=(
            "Noise only: requests that follow each other find nearly the same queue, so that "
            f"these tell no more than {alike:,.0f} independent ones would."
        ),
    )


FIGURE = Figure(
    name="fig05",
    title="Fig. 5: distribution of the wait, formula and event simulation",
    compute=compute,
    draw=draw,
    caption=caption,
    size_in=(8.6, 3.8),
    fitted=False,
)
