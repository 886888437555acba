"""A request whose model has left its node when its turn comes is sent on, worked out by hand."""

import pytest

from tests.simulator.fleets import GB
from tests.simulator.full.worlds import CHAT, NONE, HandMade

pytestmark = pytest.mark.twin

MODEL = 1
FOREST = [
    {"name": "model", "depth_tokens": 0, "bytes": 1 * GB, "weights": True},
    {"name": "small", "parent": "model", "depth_tokens": 400, "bytes": 1000},
]
TYPES = [
    {
        "name": "chat",
        "path": "small",
        "input_tokens": 1000,
        "output_tokens": 10,
        "family": "chat",
        "share": 1.0,
    }
]
PROFILES = [{"name": "none"}, {"name": "model", "vertices": ["model"]}]


def test_it_goes_to_the_next_node_that_has_the_model_and_frees_its_slot():
    # Node 0 has 3 slots beside the model until it gives it up at 0.5, and 4 slots then: three
    # requests run, the fourth waits and is turned away at once, the fifth when it lands at 0.55.
    world = HandMade(
        [(1.0, 1.0), (3.0, 1.0)],
        (MODEL, MODEL),
        [(0.01 * number, 1.0, 1.0, CHAT) for number in range(4)] + [(0.45, 2.0, 1.0, CHAT)],
        forest=FOREST,
        request_types=TYPES,
        profiles=PROFILES,
        initial={"mix": {"none": 1.0}},
        routing={"kind": "nearest"},
    )
    world.fleet.advance(0.5)
    world.fleet.start_move(0, NONE)
    table = world.after(10.0)
    assert table["node"].tolist() == [0, 0, 0, 1, 1]
    assert table["outcome"].tolist() == [0] * 5
    assert table["redispatches"].tolist() == [0, 0, 0, 1, 1]
    assert table["radio_s"][3:] == pytest.approx([0.5 - 0.03 + 0.4, 0.1 + 0.1])
    assert world.fleet.state.active[0].tolist() == [0, 0]
    assert world.fleet.state.queued[0].tolist() == [0, 0]
