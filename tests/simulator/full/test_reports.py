"""What the router knows of tokens in use and of the catalogue, live and by reports."""

import pytest

from edgegym.simulator.columns import HOLDS
from edgegym.simulator.full.routing_columns import (
    TOKENS_ON_WAY,
    TOKENS_REPORTED,
    TOKENS_THERE,
)
from tests.simulator.full.stations import BIG, NONE, Stations

pytestmark = pytest.mark.twin


def tokens(stations: Stations) -> list[int]:
    """Return tokens on their way to node 3, there, and as reported."""
    sums = stations.routing.state.station_sums[3]
    return [int(sums[column]) for column in (TOKENS_ON_WAY, TOKENS_THERE, TOKENS_REPORTED)]


def test_tokens_live():
    stations = Stations(live=True, predicts=True)
    stations.note_sent(3, 100)
    stations.note_sent(3, 20)
    stations.note_sent(3, 7)
    assert tokens(stations) == [127, 0, 127]
    stations.note_landed(3, 100)
    stations.note_lost(3, 7)
    assert tokens(stations) == [20, 100, 120]
    stations.note_left(3, 100)
    assert tokens(stations) == [20, 0, 20]


def test_tokens_by_reports():
    stations = Stations(live=False, predicts=False)
    stations.note_sent(3, 100)
    stations.note_sent(3, 20)
    stations.note_landed(3, 100)
    assert tokens(stations) == [20, 100, 0]
    stations.publish_tokens()
    assert tokens(stations) == [20, 100, 100]
    stations.note_left(3, 100)
    assert tokens(stations) == [20, 0, 100]


def test_tokens_by_reports_with_what_was_sent_since():
    stations = Stations(live=False, predicts=True)
    stations.note_sent(3, 100)
    stations.note_sent(3, 20)
    stations.note_landed(3, 100)
    assert tokens(stations) == [20, 100, 120]
    stations.note_left(3, 100)
    assert tokens(stations) == [20, 0, 120]
    stations.publish_tokens()
    assert tokens(stations) == [20, 0, 20]


def test_what_nodes_hold_is_known_when_it_is_advertised():
    stations = Stations(routing={"kind": "prefix_aware"})
    stations.routing.nodes.work[2, HOLDS] = NONE
    stations.routing.nodes.work[0, HOLDS] = BIG
    decision = stations.route()
    assert (decision.node, decision.predicted_s) == (2, pytest.approx(0.4 + 0.2 + 1.0))
    stations.publish_catalogue()
    decision = stations.route()
    assert (decision.node, decision.predicted_s) == (0, pytest.approx(0.2))
