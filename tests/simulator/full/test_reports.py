"""What the router knows of tokens in use and of the catalogue, live and by reports."""

import numpy as np
import pytest

from edgegym.simulator import Fleet
from edgegym.simulator.columns import HOLDS_SHIFT, PLACE, SITE_BITS
from edgegym.simulator.full.routing_columns import (
    TOKENS_ON_WAY,
    TOKENS_REPORTED,
    TOKENS_THERE,
)
from tests.simulator.fleets import scenario
from tests.simulator.full.stations import NONE, SMALL, Stations

pytestmark = pytest.mark.twin


COMPARES = {"kind": "lmetric"}
"""A rule that compares candidates: only those look at tokens."""


def tokens(stations: Stations) -> list[int]:
    """Return tokens on their way to node 3, there, and as reported."""
    sums = stations.routing.state.station_sums[3]
    return [int(sums[column]) for column in (TOKENS_ON_WAY, TOKENS_THERE, TOKENS_REPORTED)]


def test_tokens_live():
    stations = Stations(routing=COMPARES, live=True, predicts=True)
    stations.note_sent(3, 100)
    stations.note_sent(3, 20)
    stations.note_sent(3, 7)
    assert tokens(stations) == [127, 0, 127]
    stations.note_landed(3, 100)
    stations.note_lost(3, 7)
    assert tokens(stations) == [20, 100, 120]
    stations.note_left(3, 100)
    assert tokens(stations) == [20, 0, 20]


def test_tokens_that_no_rule_looks_at():
    stations = Stations(live=True, predicts=True)
    stations.note_sent(3, 100)
    stations.note_landed(3, 100)
    stations.publish_tokens()
    assert tokens(stations) == [0, 0, 0]


def test_tokens_by_reports():
    stations = Stations(routing=COMPARES, live=False, predicts=False)
    stations.note_sent(3, 100)
    stations.note_sent(3, 20)
    stations.note_landed(3, 100)
    assert tokens(stations) == [20, 100, 0]
    stations.publish_tokens()
    assert tokens(stations) == [20, 100, 100]
    stations.note_left(3, 100)
    assert tokens(stations) == [20, 0, 100]


def test_tokens_by_reports_with_what_was_sent_since():
    stations = Stations(routing=COMPARES, live=False, predicts=True)
    stations.note_sent(3, 100)
    stations.note_sent(3, 20)
    stations.note_landed(3, 100)
    assert tokens(stations) == [20, 100, 120]
    stations.note_left(3, 100)
    assert tokens(stations) == [20, 0, 120]
    stations.publish_tokens()
    assert tokens(stations) == [20, 0, 20]


def test_what_nodes_hold_is_known_when_it_is_advertised():
    """A move from `small` to `none` takes the 400 tokens at once; routers hear of it at 5 s."""
    fleet = Fleet(
        scenario(
            telemetry={"catalogue_period_s": 5.0},
            routing={"kind": "prefix_aware"},
            initial={"mix": {"small": 1.0}},
        ),
        seed=1,
    )
    place = fleet.state.node_work[0, 2, PLACE]

    def advertised() -> int:
        return int(fleet.state.sites[0, place, SITE_BITS].view(np.int64)) >> HOLDS_SHIFT

    fleet.advance(1.0)
    fleet.start_move(2, NONE)
    assert (fleet.state.holding[0, 2], advertised()) == (NONE, SMALL)
    fleet.advance(3.9)
    assert (fleet.state.holding[0, 2], advertised()) == (NONE, SMALL)
    fleet.advance(0.2)
    assert (fleet.state.holding[0, 2], advertised()) == (NONE, NONE)
