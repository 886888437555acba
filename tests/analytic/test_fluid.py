"""The fluid model against closed forms, a dense computation in NumPy, and itself solved again."""

import math
from typing import NamedTuple

import numpy as np
import pytest

from edgegym.analytic import erlang_c, wait_cdf
from edgegym.analytic.fluid import FluidCells, FluidNodes, FluidWorld, write_move_gains

TIE_S, SATURATED = 0.1, 0.95


class Small(NamedTuple):
    world: FluidWorld
    cells: FluidCells
    nodes: FluidNodes
    rate: np.ndarray


def all_near(radio_s: np.ndarray) -> FluidCells:
    """Return cells whose requests may go to every node, ``radio_s [C, N]``."""
    cells, nodes = radio_s.shape
    near = np.argsort(radio_s, axis=1, kind="stable")
    cell, place = np.divmod(np.argsort(near, axis=None, kind="stable"), nodes)
    return FluidCells(
        near=near,
        radio_s=np.take_along_axis(radio_s, near, axis=1),
        start=np.arange(nodes + 1) * cells,
        cell=cell,
        place=place,
    )


def small(seed: int = 0, load: float = 0.5, nodes: int = 4, cells: int = 9, slots: int = 6):
    rng = np.random.default_rng(seed)
    prefill = np.array([[1.0, 0.3], [0.2, 0.3], [1.0, 0.1]])
    world = FluidWorld(
        prefill_s=prefill,
        occupancy_s=prefill + 0.5,
        target_s=np.array([1.2, 0.7]),
        radio_factor=np.array([1.0, 0.5]),
        radio_base_s=0.02,
        weighs_prefill=True,
        weighs_wait=True,
        wait_scale=1.0,
        horizon_s=40.0,
    )
    rate = rng.random((cells, 2))
    rate *= load * nodes * slots / (rate * world.occupancy_s[0]).sum()
    held = FluidNodes(rng.integers(0, 3, nodes), np.full(nodes, slots), np.zeros(nodes))
    return Small(world, all_near(rng.random((cells, nodes))), held, rate)


def gains(case: Small, moves: list[tuple[int, int, int]]) -> tuple[float, np.ndarray]:
    node, row, slots = np.array(moves, dtype=np.int64).T.copy()
    gain = np.empty(len(moves))
    hits = write_move_gains(*case, node, row, slots, gain)
    return float(hits), gain


def queue(world: FluidWorld, slots: int, rate: float, load: float) -> tuple[float, float, float]:
    """Return mean wait, probability of waiting, decay."""
    if rate == 0.0:
        return 0.0, 0.0, 1.0
    most = min(load, SATURATED * slots)
    waiting = erlang_c(slots, most)
    mean = waiting / ((slots - most) * rate / load) + world.horizon_s * (load - most) / slots / 2
    behind = world.horizon_s * (load - most) / slots / 2
    waiting += (1.0 - waiting) * behind / (behind + 0.3)
    return mean, waiting, waiting / mean


def dense(case: Small, rounds: int = 60) -> tuple[float, float]:
    """Return requests/s within target and the growth of backlogs, cell by cell."""
    world, cells, nodes, rate = case
    count = len(nodes.row)
    radio_s = np.empty((len(rate), count))
    np.put_along_axis(radio_s, cells.near, cells.radio_s, axis=1)
    waits, arrived, load = np.zeros((3, count))
    flows: list[tuple[int, int, int, float]] = []
    queues: list[tuple[float, float, float]] = []
    for turn in range(rounds):
        arrived, load, flows = np.zeros(count), np.zeros(count), []
        for c, q in np.ndindex(rate.shape):
            cost = radio_s[c] * world.radio_factor[q] + world.prefill_s[nodes.row, q] + waits
            best, second = np.argsort(cost)[:2]
            share = min(0.5 + (cost[second] - cost[best]) / TIE_S / 2.0, 1.0)
            for j, part in ((best, share), (second, 1.0 - share)):
                flows.append((c, q, int(j), float(part * rate[c, q])))
                arrived[j] += part * rate[c, q]
                load[j] += part * rate[c, q] * world.occupancy_s[nodes.row[j], q]
        queues = [queue(world, nodes.slots[j], arrived[j], load[j]) for j in range(count)]
        if turn < rounds - 1:
            waits += 0.2 * (np.array([mean for mean, _, _ in queues]) - waits)
    hits = 0.0
    for c, q, j, flow in flows:
        slack = world.target_s[q] - world.radio_base_s - world.prefill_s[nodes.row[j], q]
        slack -= radio_s[c, j] * world.radio_factor[q]
        if slack >= 0.0:
            hits += flow * (1.0 - queues[j][1] * math.exp(-queues[j][2] * slack))
    over = np.maximum(load - SATURATED * nodes.slots, 0.0)
    return hits, float((arrived * over / np.maximum(load, 1e-12)).sum())


@pytest.mark.twin
def test_one_node_is_an_erlang_queue():
    case = small(nodes=1, cells=3, load=0.7)
    world, cells, nodes, rate = case
    row = nodes.row[0]
    load = float((rate * world.occupancy_s[row]).sum())
    service = rate.sum() / load
    expected = 0.0
    for c, q in np.ndindex(rate.shape):
        radio_s = cells.radio_s[c, 0] * world.radio_factor[q]
        slack = world.target_s[q] - world.radio_base_s - radio_s - world.prefill_s[row, q]
        expected += rate[c, q] * wait_cdf(slack, 6, rate.sum(), service)
    assert 0.1 < expected / rate.sum() < 0.99
    hits, gain = gains(case, [(0, row, 6)])
    assert hits == pytest.approx(expected, rel=1e-12)
    assert gain[0] == 0.0


@pytest.mark.twin
@pytest.mark.parametrize("load", [0.3, 0.6])
def test_flows_and_hits_are_those_of_a_dense_computation(load):
    case = small(seed=3, load=load)
    assert gains(case, [(0, 0, 6)])[0] == pytest.approx(dense(case)[0], rel=1e-3)


@pytest.mark.twin
def test_what_stays_as_it_is_gains_nothing():
    case = small(seed=5, load=0.9)
    moves = [(i, int(case.nodes.row[i]), 6) for i in range(4)]
    assert gains(case, moves)[1].tolist() == [0.0] * 4


@pytest.mark.parametrize(("load", "share"), [(0.05, 0.01), (0.5, 0.1)])
def test_a_gain_is_what_solving_again_finds(load, share):
    """Exact without queues but for ties; with them others' waits count to first order."""
    found, truth = [], []
    for seed in range(3):
        case = small(seed, load)
        moves = [(i, r, 5 + r) for i in range(4) for r in range(3) if r != case.nodes.row[i]]
        found += (gains(case, moves)[1] / case.rate.sum()).tolist()
        before = dense(case)
        for i, row, slots in moves:
            held = case.nodes._replace(row=case.nodes.row.copy(), slots=case.nodes.slots.copy())
            held.row[i], held.slots[i] = row, slots
            after = dense(case._replace(nodes=held))
            truth.append((after[0] - before[0] - (after[1] - before[1])) / case.rate.sum())
    assert np.abs(truth).max() > 3.0 * share
    np.testing.assert_allclose(found, truth, atol=share)


def test_beyond_saturation_backlogs_count():
    """One node that drowns: nobody is in time before or after, and more slots still help."""
    case = small(nodes=1, cells=3, load=4.0)
    row = int(case.nodes.row[0])
    hits, gain = gains(case, [(0, row, 7), (0, row, 5)])
    assert hits < 0.05 * case.rate.sum()
    load = (case.rate * case.world.occupancy_s[row]).sum()
    per_slot = SATURATED * case.rate.sum() / load
    np.testing.assert_allclose(gain, [per_slot, -per_slot], rtol=0.1)


def test_a_type_that_no_node_serves_is_never_in_time():
    case = small(load=0.3)
    prefill = case.world.prefill_s.copy()
    prefill[:, 1] = np.inf
    served = case._replace(world=case.world._replace(prefill_s=prefill))
    alone = case._replace(rate=case.rate * [1.0, 0.0])
    assert gains(served, [(0, 0, 6)])[0] == pytest.approx(gains(alone, [(0, 0, 6)])[0], rel=1e-12)
    assert np.isfinite(gains(served, [(0, 1, 6), (1, 2, 6)])[1]).all()


def test_a_backlog_makes_requests_late_and_its_end_counts():
    case = small(nodes=1, cells=3, load=0.4)
    row = int(case.nodes.row[0])
    hits, gain = gains(case, [(0, row, 7)])
    behind = case._replace(nodes=case.nodes._replace(queued=np.array([400.0])))
    late, more = gains(behind, [(0, row, 7)])
    assert late < 0.5 * hits
    load = (case.rate * case.world.occupancy_s[row]).sum()
    per_slot = SATURATED * case.rate.sum() / load  # the backlog outlasts the horizon
    assert more[0] == pytest.approx(per_slot, rel=0.3)
    assert gain[0] < 0.1 * per_slot
