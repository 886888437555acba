import numpy as np
import pytest

from edgegym.profiles import additive_value_s
from edgegym.traces.grouping import TypeGroups
from edgegym.traces.profiles import trace_demand, trace_profiles
from edgegym.traces.selection import KeptForest
from edgegym.world.hardware import Hardware, OccupancyDecode, Prefill

KV = 10


def demand(parent, depth, vertex, share):
    return trace_demand(
        KeptForest(parent=np.array(parent), depth_tokens=np.array(depth), deepest=np.array([])),
        TypeGroups(
            vertex=np.array(vertex),
            share=np.array(share),
            input_tokens=np.full(len(vertex), 5000),
            output_tokens=np.full(len(vertex), 10),
            output_scv=0.0,
            of_request=np.empty(0, dtype=np.int64),
        ),
        Hardware(
            memory_bytes=1,
            kv_bytes_per_token=KV,
            prefill=Prefill(linear_s=1e-3),
            decode=OccupancyDecode(occupancy_s=1.0),
        ),
    )


def build(found, family, usable_tokens, number=16, runtime_tokens=10):
    return trace_profiles(
        found,
        np.array(family),
        usable_bytes=KV * usable_tokens,
        runtime_bytes=KV * runtime_tokens,
        number=number,
    )


def test_additive_value():
    # 0 - 1 and 0 - 2; types end at 1, 2, 0 and nowhere. A token saves 1 ms.
    found = demand([-1, 0, 0], [100, 300, 400], [1, 2, 0, -1], [0.1, 0.2, 0.3, 0.4])
    np.testing.assert_allclose(additive_value_s(found), [0.6 * 0.1, 0.1 * 0.2, 0.2 * 0.3])
    np.testing.assert_array_equal(found.bytes, [1000, 2000, 3000])
    assert found.vertex_names == ("v1_100", "v2_300", "v3_400")


def test_filled_by_value_per_byte_with_ancestors():
    # Per own token: root 0 is worth 0.3, its child 1 0.3; root 2 0.5, its child 3 0.2.
    found = demand([-1, 0, -1, 2], [100, 200, 100, 300], [1, 2, 3, -1], [0.3, 0.3, 0.2, 0.2])
    built = build(found, [0, 0, 1, 1], usable_tokens=600)
    profiles = {profile.name: profile for profile in built}
    # Half of 600 tokens: 2 first, then 0 and 1; 3 would not fit any more.
    assert profiles["shared_50"].vertices == (0, 1, 2)
    assert profiles["shared_50"].bytes == 300 * KV
    assert profiles["shared_50"].hit_tokens == (200, 100, 100, 0)
    assert profiles["family_1_50"].vertices == (0, 1)
    assert profiles["family_2_50"].vertices == (2, 3)
    # A quarter holds 150 tokens: the hottest root, found once and not again for its family.
    assert profiles["shared_25"].vertices == (2,)
    assert profiles["family_1_25"].vertices == (0,)
    assert "family_2_25" not in profiles
    assert built[0].name == "uncached"
    assert built[0].vertices == ()


def test_rounds_hold_what_earlier_profiles_leave_over():
    # Five equal trees in one family; two fit at a time.
    found = demand([-1] * 5, [100] * 5, range(5), [0.2] * 5)
    profiles = build(found, [0] * 5, usable_tokens=400, number=5)
    assert [profile.vertices for profile in profiles[1:4]] == [(0, 1), (2, 3), (4,)]
    assert profiles[2].name == "family_1_50_2"
    assert len(profiles) == 5


def test_dominated_profiles_are_left_out():
    # The child draws no request: to hold it costs memory and gives nothing.
    found = demand([-1, 0], [100, 200], [0], [1.0])
    uncached, useful = build(found, [0, 0], usable_tokens=1000)
    assert uncached.vertices == ()
    assert useful.vertices == (0,)


@pytest.mark.parametrize("runtime_tokens", [10, 350, 399])
def test_one_sequence_always_fits_beside(runtime_tokens):
    found = demand([-1] * 4, [100, 50, 25, 1], range(4), [0.25] * 4)
    profiles = build(found, [0] * 4, 400, runtime_tokens=runtime_tokens)
    assert all(p.bytes + KV * runtime_tokens <= KV * 400 for p in profiles)
    assert len(profiles) > 1
