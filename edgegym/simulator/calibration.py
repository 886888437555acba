"""How well the router's predictions agree with what happens.

The path that was taken is in the records. The best path that was not taken is not: what it would
have been like is found by playing the world again with the request sent there.
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from edgegym.simulator.counterfactual import replay_counterfactuals
from edgegym.simulator.fleet import Fleet
from edgegym.simulator.records import ORIGIN, ArraySink, RecordTable
from edgegym.simulator.state import Bools, Floats, Ints
from edgegym.world.scenario import Scenario


@dataclass(frozen=True)
class Calibration:
    """Predictions of TTFT beside what came of them.

    Attributes
    ----------
    group : str
        Which requests: ``all``, or where the prefix state came from.
    count : int
        How many have both a prediction and a TTFT.
    bias_s : float
        Mean of realised less predicted: positive where the router is too hopeful. NaN without any.
    scatter_s : float
        Root mean square of that difference around its mean. NaN without any.
    correlation : float
        Pearson's, of predicted and realised. NaN where one of them does not vary.
    """

    group: str
    count: int
    bias_s: float
    scatter_s: float
    correlation: float


def calibration_of(group: str, predicted_s: ArrayLike, realised_s: ArrayLike) -> Calibration:
    """Compare predictions with what came of them.

    Parameters
    ----------
    group : str
        Name of the result.
    predicted_s, realised_s : array_like
        ``[n]`` each; pairs with a NaN are left out.
    """
    predicted, realised = np.asarray(predicted_s, float), np.asarray(realised_s, float)
    known = np.isfinite(predicted) & np.isfinite(realised)
    predicted, realised = predicted[known], realised[known]
    if not len(predicted):
        return Calibration(group, 0, math.nan, math.nan, math.nan)
    error = realised - predicted
    bias = float(error.mean())
    scatter = float(np.sqrt(np.mean((error - bias) ** 2)))
    varies = len(error) > 1 and np.ptp(predicted) > 0.0 and np.ptp(realised) > 0.0
    correlation = float(np.corrcoef(predicted, realised)[0, 1]) if varies else math.nan
    return Calibration(group, len(error), bias, scatter, correlation)


def calibrate(records: RecordTable) -> tuple[Calibration, ...]:
    """Compare the TTFT that the router predicted with the one that came, for paths taken.

    Parameters
    ----------
    records : RecordTable
        Of a router that predicts; requests that were sent again after a failure are left out, for
        the prediction was not theirs.

    Returns
    -------
    tuple of Calibration
        For all requests, then by the source of the prefix state that they used: none, the node
        itself, fetched, the origin; sources without requests are left out.
    """
    once = records["redispatches"] == 0
    predicted, realised = records["predicted_s"], records["ttft_s"]
    rows = [calibration_of("all", predicted[once], realised[once])]
    for source in records.labels("source"):
        chosen = once & records.is_label("source", source)
        row = calibration_of(source, predicted[chosen], realised[chosen])
        if row.count:
            rows.append(row)
    return tuple(rows)


@dataclass(frozen=True, eq=False)
class RejectedPaths:
    """Sampled requests, each replayed on the best path that the router did not take.

    Attributes
    ----------
    request : ndarray
        ``[n]`` positions in the request stream.
    chosen_node, rejected_node : ndarray
        ``[n]`` ends of both paths, -2 for the origin.
    chosen_predicted_s, chosen_realised_s : ndarray
        ``[n]`` TTFT on the path that was taken.
    rejected_predicted_s, rejected_realised_s : ndarray
        ``[n]`` TTFT on the other one; NaN where it had not come by the end of the replay.
    others_s : ndarray
        ``[n]`` what the other path would have cost all others together, in TTFT.
    """

    request: Ints
    chosen_node: Ints
    rejected_node: Ints
    chosen_predicted_s: Floats
    chosen_realised_s: Floats
    rejected_predicted_s: Floats
    rejected_realised_s: Floats
    others_s: Floats

    @property
    def calibrations(self) -> tuple[Calibration, Calibration]:
        """Of the paths taken and of those not taken, over the same requests."""
        return (
            calibration_of("taken", self.chosen_predicted_s, self.chosen_realised_s),
            calibration_of("not taken", self.rejected_predicted_s, self.rejected_realised_s),
        )

    @property
    def regret_share(self) -> float:
        """Share of the samples whose rejected path would have been faster for the request itself.

        NaN without samples.
        """
        if not len(self.request):
            return math.nan
        return float(np.mean(self.rejected_realised_s < self.chosen_realised_s))


def sample_rejected_paths(
    scenario: Scenario,
    seed: int,
    *,
    samples: int,
    warmup_s: float,
    seconds: float,
    horizon_s: float,
    tier_wait_s: ArrayLike | None = None,
    kind: Literal["all", "node", "origin"] = "all",
) -> RejectedPaths:
    """Replay a sample of requests on the best path that was not taken.

    Parameters
    ----------
    scenario : Scenario
        The world, with a router that predicts.
    seed : int
        Its seed; the sample depends on it too.
    samples : int
        How many requests; fewer where there are not so many.
    warmup_s, seconds : float
        They are made in (warmup_s, warmup_s + seconds].
    horizon_s : float
        How long each replay goes on after the arrival.
    tier_wait_s : array_like, optional
        As of :class:`~edgegym.simulator.Fleet`.
    kind : str
        Which ends the rejected paths have.

    Raises
    ------
    ValueError
        If a number is out of range.
    """
    if samples < 1:
        raise ValueError(f"samples = {samples}: must be at least 1")
    sink = ArraySink()
    fleet = Fleet(scenario, seed, tier_wait_s, records=sink, full=True)
    fleet.advance(warmup_s + seconds)
    table = sink.table()
    rows = np.flatnonzero(_eligible(table, warmup_s, kind))
    generator = np.random.default_rng([seed, samples])
    chosen = generator.choice(rows, min(samples, len(rows)), replace=False)
    drawn = table.where(chosen[np.argsort(table["request"][chosen])])
    nodes = drawn["runner_up_node"].tolist()
    replays = replay_counterfactuals(
        scenario, seed, drawn["request"].tolist(), nodes, horizon_s, tier_wait_s
    )
    return RejectedPaths(
        drawn["request"],
        drawn["node"].astype(np.int64),
        drawn["runner_up_node"].astype(np.int64),
        drawn["predicted_s"],
        np.array([replay.factual_ttft_s for replay in replays]),
        drawn["runner_up_s"],
        np.array([replay.forced_ttft_s for replay in replays]),
        np.array([replay.others_ttft_sum_s for replay in replays]),
    )


def _eligible(table: RecordTable, warmup_s: float, kind: str) -> Bools:
    known = np.isfinite(table["predicted_s"]) & np.isfinite(table["runner_up_s"])
    known &= (table["arrival_s"] > warmup_s) & (table["redispatches"] == 0)
    known &= np.isfinite(table["ttft_s"])
    end = table["runner_up_node"]
    if kind == "node":
        return known & (end >= 0)
    return known & (end == ORIGIN) if kind == "origin" else known
