"""Requests that fetch, in fleets worked out by hand: every part of their TTFT."""

from typing import Any

import numpy as np
import pytest

from edgegym.simulator.full.counts import FETCHED_BYTES as FETCHED_BYTES_COUNT
from edgegym.simulator.full.counts import FETCHES, FETCHES_LOST
from edgegym.world.errors import ScenarioError
from tests.simulator.fleets import GB, scenario
from tests.simulator.full.worlds import BIG, CHAT, CODE, NONE, OTHER, SMALL, HandMade

HERE, THERE, FAR = (2.0, 5.0), (4.0, 5.0), (9.0, 5.0)
PLACES = [HERE, THERE, FAR]

LINK = {"rate_bytes_per_s": 1e9, "sharing": "shared", "restore_bytes_per_s": 4e9}


def fleet(
    requests: Any,
    profiles: Any = (NONE, BIG, OTHER),
    *,
    controller: Any = "always",
    link: Any = LINK,
    **overrides: Any,
):
    """Return a fleet that sends requests, all made at the first node, to the nearest node."""
    made = [(time, *HERE, kind) for time, kind in requests]
    changes = {
        "routing": {"kind": "nearest"},
        "fetch": {"controller": controller},
        "backhaul": link,
        "objective.ttft_target_s": 100.0,
    }
    return HandMade(PLACES, profiles, made, **changes | overrides)


def parts(table):
    """Return radio, wait, stall, restoration and prefill of each request, ``[n, 5]``."""
    names = ("radio_s", "wait_s", "stall_s", "restore_s", "prefill_s")
    return np.transpose([table[name] for name in names])


def assert_parts(table, expected):
    """Compare the parts of the TTFT, and that they add up to it."""
    np.testing.assert_allclose(parts(table), expected, rtol=0.0, atol=1e-9)
    np.testing.assert_allclose(table["ttft_s"], np.sum(expected, axis=1), rtol=0.0, atol=1e-9)


@pytest.mark.twin
def test_two_fetches_share_the_link():
    """A misses 2 GB from 0, B another GB from 0.5 on: B ends at 2.5 and A at 3.

    Restoration takes 0.5 and 0.25 s, prefill of what is left 0.2 and 0.1 s.
    """
    made = fleet([(0.0, CHAT), (0.5, CODE)])
    table = made.after(10.0)
    assert_parts(table, [[0, 0, 3.0, 0.5, 0.2], [0, 0, 2.0, 0.25, 0.1]])
    np.testing.assert_allclose(table["transfer_wait_s"], [1.0, 1.0], atol=1e-9)
    assert list(table["fetched_bytes"]) == [2 * GB, GB]
    assert list(table["hit_tokens"]) == [800, 500]
    assert list(table.words("source")) == ["fetched", "fetched"]


@pytest.mark.twin
def test_window_counts_what_was_fetched():
    made = fleet([(0.0, CHAT), (0.5, CODE)])
    window = made.fleet.advance(2.75)
    assert (window.extra[FETCHES], window.extra[FETCHED_BYTES_COUNT]) == (2, GB)
    window += made.fleet.advance(7.25)
    assert (window.extra[FETCHES], window.extra[FETCHED_BYTES_COUNT]) == (2, 3 * GB)
    assert window.extra[FETCHES_LOST] == 0


@pytest.mark.twin
def test_transfer_hides_in_the_wait_for_a_slot():
    """Two requests hold both slots until 0.7 (prefill 0.2, decode 0.5); a third comes at 0.1.

    It misses 1 GB, there at 1.1: of its transfer only 0.4 s stick out.
    """
    table = fleet([(0.0, CHAT), (0.0, CHAT), (0.1, CODE)], (BIG, NONE, OTHER)).after(10.0)
    assert_parts(table, [[0, 0, 0, 0, 0.2], [0, 0, 0, 0, 0.2], [0, 0.6, 0.4, 0.25, 0.1]])
    assert list(table.words("source")) == ["local", "local", "fetched"]


@pytest.mark.twin
def test_only_what_is_missing_is_fetched():
    """The node holds the first 400 tokens, nobody the rest of `code`'s: A fetches 1 GB, B none."""
    table = fleet([(0.0, CHAT), (0.0, CODE)], (SMALL, BIG, NONE)).after(10.0)
    assert_parts(table, [[0, 0, 1.0, 0.25, 0.2], [0, 0, 0, 0, 0.6]])
    assert list(table["fetched_bytes"]) == [GB, 0]


@pytest.mark.twin
def test_moves_and_fetches_share_the_link():
    """A move of 1 GB and a fetch of 2 GB from 0: the move ends at 2, the fetch at 3."""
    made = fleet([(0.0, CHAT)])
    made.fleet.start_move(2, SMALL)
    made.fleet.advance(1.999)
    assert made.fleet.state.receiving[0, 2]
    made.fleet.advance(0.002)
    assert not made.fleet.state.receiving[0, 2]
    assert_parts(made.after(10.0), [[0, 0, 3.0, 0.5, 0.2]])


@pytest.mark.twin
def test_a_fetch_is_given_up_with_what_it_continues():
    """Three requests hold all slots until 1.1; the fourth fetches what follows 400 tokens.

    The node gives these up in a move at 0.5: at 1.1 the rest is of no use, and all is computed.
    """
    made = fleet([(0.0, CODE)] * 3 + [(0.1, CHAT)], (SMALL, BIG, NONE))
    made.fleet.advance(0.5)
    made.fleet.start_move(0, OTHER)
    table = made.after(10.0)
    assert_parts(table, [[0, 0, 0, 0, 0.6]] * 3 + [[0, 1.0, 0, 0, 1.0]])
    assert list(table["fetched_bytes"]) == [0] * 4


@pytest.mark.twin
def test_compression_shortens_the_transfer_not_the_restoration():
    table = fleet([(0.0, CHAT)], link=LINK | {"compression": 2.0}).after(10.0)
    assert_parts(table, [[0, 0, 1.0, 0.5, 0.2]])
    assert list(table["fetched_bytes"]) == [2 * GB]


@pytest.mark.twin
def test_access_rates_and_dedicated_links():
    table = fleet([(0.0, CHAT)], link=LINK | {"access_bytes_per_s": 0.5e9}).after(10.0)
    assert_parts(table, [[0, 0, 4.0, 0.5, 0.2]])
    table = fleet([(0.0, CHAT)] * 2, link={"rate_bytes_per_s": 1e9}).after(10.0)
    assert_parts(table, [[0, 0, 2.0, 0, 0.2]] * 2)


@pytest.mark.twin
def test_layers_hide_part_of_the_transfer():
    """Four layers: 2 s of transfer; restoration and prefill take 0.7 s, the last layer 0.175."""
    table = fleet([(0.0, CHAT)], link=LINK | {"layers": 4}).after(10.0)
    assert_parts(table, [[0, 0, 2.0 + 0.175 - 0.7, 0.5, 0.2]])


@pytest.mark.twin
@pytest.mark.parametrize("controller", ["never", "independent", "joint"])
def test_others_compute_where_fetching_does_not_pay(controller):
    """2 s and 0.5 s against 0.8 s that prefill would save."""
    table = fleet([(0.0, CHAT)], controller=controller).after(10.0)
    assert_parts(table, [[0, 0, 0, 0, 1.0]])


@pytest.mark.twin
def test_joint_fetches_until_it_costs_more_than_it_saves():
    """10 GB/s and no restoration: 0.2 s save 0.8 s. The second ends after 0.4 s and delays the
    first by 0.2: 0.8 - 0.4 - 0.2 > 0. The third would end after 0.6 s and delay two by 0.2 each."""
    link = {"rate_bytes_per_s": 10e9, "sharing": "shared"}
    table = fleet([(0.0, CHAT)] * 4, controller="joint", link=link).after(10.0)
    stalls = [[0, 0, 0.4, 0, 0.2]] * 2 + [[0, 0, 0, 0, 1.0]] * 2
    assert_parts(table, stalls)
    # Independent controllers all read the rate of the empty link, and all fetch.
    table = fleet([(0.0, CHAT)] * 4, controller="independent", link=link).after(10.0)
    assert_parts(table, [[0, 0, 0.8, 0, 0.2]] * 4)


def outage(what, begin_s, end_s, node=None):
    """Return the override for an outage."""
    item = {"what": what, "begin_s": begin_s, "end_s": end_s}
    return {"failures": {"outages": [item if node is None else item | {"node": node}]}}


@pytest.mark.twin
def test_without_the_link_fetches_become_recomputes():
    """The link fails at 1: A, which has a slot, computes from then on, and so does what comes."""
    made = fleet([(0.0, CHAT), (1.5, CHAT)], **outage("backhaul", 1.0, 5.0))
    table = made.after(10.0)
    assert_parts(table, [[0, 0, 1.0, 0, 1.0], [0, 0, 0, 0, 1.0]])
    assert list(table["fetched_bytes"]) == [0, 0]
    assert list(table["hit_tokens"]) == [0, 0]


@pytest.mark.twin
def test_fetches_end_with_their_source():
    """Both nodes that hold something are sources; the one of A fails at 1, B goes on alone.

    Until 1 both have received 0.5 GB; B gets its other 0.5 GB by 1.5.
    """
    made = fleet([(0.0, CHAT), (0.0, CODE)], **outage("node", 1.0, 5.0, node=1))
    table = made.after(4.0)
    assert_parts(table, [[0, 0, 1.0, 0, 1.0], [0, 0, 1.5, 0.25, 0.1]])


@pytest.mark.twin
def test_the_nearest_holder_is_the_source():
    """Nodes 1 and 2 both hold it; the failure of the farther one does not matter."""
    changes = outage("node", 1.0, 5.0, node=2)
    table = fleet([(0.0, CHAT)], (NONE, BIG, BIG), **changes).after(4.0)
    assert_parts(table, [[0, 0, 2.0, 0.5, 0.2]])


ORIGIN = {
    "rtt_s": 50.0,
    "slots": 4,
    "prefill_linear_s": 1e-3,
    "tpot_s": 0.01,
}


@pytest.mark.twin
def test_the_store_of_the_origin_has_everything():
    made = fleet([(0.0, CHAT)], (NONE, NONE, NONE), origin=ORIGIN)
    assert_parts(made.after(10.0), [[0, 0, 2.0, 0.5, 0.2]])


@pytest.mark.twin
def test_fetches_from_the_store_end_with_the_origin():
    made = fleet(
        [(0.0, CHAT), (1.5, CHAT)],
        (NONE, NONE, NONE),
        origin=ORIGIN,
        **outage("origin", 1.0, 5.0),
    )
    assert_parts(made.after(10.0), [[0, 0, 1.0, 0, 1.0], [0, 0, 0, 0, 1.0]])


@pytest.mark.twin
@pytest.mark.parametrize(
    ("rate", "node", "expected"),
    [
        # Radio to node 1 takes 0.4 s and prefill there 0.2; computing here 1 s.
        (0.5e9, 1, [0.4, 0, 0, 0, 0.2]),
        # A fetch in 0.25 s makes it 0.45 s here.
        (8e9, 0, [0, 0, 0.25, 0, 0.2]),
    ],
)
def test_joint_routers_compare_fetching_computing_and_going_there(rate, node, expected):
    made = fleet(
        [(0.0, CHAT)],
        controller="joint",
        link={"rate_bytes_per_s": rate, "sharing": "shared"},
        routing={"kind": "load_aware"},
    )
    table = made.after(10.0)
    assert list(table["node"]) == [node]
    assert_parts(table, [expected])
    assert table["predicted_s"][0] == pytest.approx(np.sum(expected), abs=1e-9)


@pytest.mark.twin
def test_joint_routers_count_the_delay_of_others():
    """At 12 GB/s the first of two fetches here: 1/6 + 0.2 s. The second would end after 1/3 s.

    That makes 0.53 s, less than the 0.6 s where the prefix is; but it would delay the first by 1/6.
    """
    made = fleet(
        [(0.0, CHAT)] * 2,
        controller="joint",
        link={"rate_bytes_per_s": 12e9, "sharing": "shared"},
        routing={"kind": "load_aware"},
    )
    assert list(made.after(10.0)["node"]) == [0, 1]


@pytest.mark.twin
@pytest.mark.parametrize(("slowdown", "others_end"), [(1.0, 2.7), (2.0, 2.95)])
def test_restoration_slows_decoding(slowdown, others_end):
    """An engine with 0.1 s per token. A computes until 0.6 and then decodes 19 tokens.

    B fetches 2 GB until 1, unpacks them until 1.5, and is prefilled until 1.7 while decoding
    pauses. Without interference A ends 1.9 + 0.2 s after its first token; at half the speed during
    the restoration 0.25 s later.
    """
    made = fleet(
        [(0.0, CODE), (0.0, CHAT)],
        (NONE, BIG, NONE),
        link=LINK | {"rate_bytes_per_s": 2e9, "restore_slowdown": slowdown},
        service={"kind": "engine"},
        **{"hardware.decode": {"kind": "tpot", "tpot_s": {1: 0.1, 2: 0.1}}},
    )
    table = made.after(10.0)
    assert_parts(table, [[0, 0, 0, 0, 0.6], [0, 0, 1.0, 0.5, 0.2]])
    np.testing.assert_allclose(table["end_to_end_s"], [others_end, 2.6], atol=1e-9)


def test_layers_need_a_service_without_prefill_server():
    with pytest.raises(ScenarioError, match=r"backhaul.layers = 4.*'engine' it must be 1"):
        scenario(
            backhaul=LINK | {"layers": 4},
            service={"kind": "engine"},
            **{"hardware.decode": {"kind": "tpot", "tpot_s": {1: 0.1}}},
        )
