"""Other simulators, on the same queue: they must agree with Erlang-C to be worth a comparison."""

from importlib.util import find_spec

import pytest

from edgegym.evaluation import peers

RATE = 0.82 * 9


def mean_wait_s():
    """Return the mean wait of M/M/9 with unit service rate, from the blocking recursion."""
    blocking = 1.0
    for servers in range(1, 10):
        blocking = RATE * blocking / (servers + RATE * blocking)
    waiting = blocking / (1.0 - 0.82 * (1.0 - blocking))
    return waiting / (9.0 - RATE)


@pytest.mark.parametrize(
    ("simulate", "module"),
    [(peers.mmc_with_heap, "heapq"), (peers.mmc_with_simpy, "simpy"), (peers.mmc_with_ciw, "ciw")],
)
def test_every_peer_simulates_the_same_queue(simulate, module):
    if find_spec(module) is None:
        pytest.skip(f"{module} is not installed")
    waits = [simulate(RATE, 1.0, 20_000, seed) for seed in range(3)]
    assert sum(waits) / 3 == pytest.approx(mean_wait_s(), rel=0.15)
    assert len(set(waits)) == 3


def test_what_is_not_installed_has_no_rate(monkeypatch):
    monkeypatch.setattr(peers, "find_spec", lambda name: None)
    rates = peers.peer_requests_per_s(RATE, 1.0, 500, 1)
    assert rates["ciw"] is rates["simpy"] is None
    assert rates["plain Python"] > 0
