import math
from itertools import pairwise

import numpy as np
import pytest

from edgegym.profiles import (
    ForestDemand,
    additive_value_s,
    hit_share,
    lifetime_value_s,
    path_score,
    valid_share,
)
from edgegym.world.hardware import Prefill
from tests.profiles.forests import closed_sets, random_demand


@pytest.mark.parametrize("attention", ["residual", "context"])
@pytest.mark.parametrize("floor_s", [0.0, 0.2])
def test_values_of_a_closed_set_add_up_to_what_it_saves(attention, floor_s):
    prefill = Prefill(linear_s=1e-3, quadratic_s=2e-7, floor_s=floor_s, attention=attention)
    for seed in range(4):
        demand = random_demand(seed, prefill=prefill)
        value = additive_value_s(demand)
        assert (value >= 0).all()
        for held in closed_sets(demand):
            assert value[list(held)].sum() == pytest.approx(demand.saved_s(held), abs=1e-12)


def test_path_score_by_hand():
    # Root of 100 tokens and 40 bytes; its child of 200 and 10. A token saves 1 ms.
    demand = ForestDemand(
        parent=[-1, 0, -1, -1],
        depth_tokens=[100, 300, 50, 0],
        bytes=[40, 10, 0, 0],
        type_vertex=[0, 1, 2, -1],
        share=[0.2, 0.3, 0.1, 0.4],
        input_tokens=[1000] * 4,
        prefill=Prefill(linear_s=1e-3),
    )
    score = path_score(demand)
    # The child's score counts the root's saving and bytes as well.
    np.testing.assert_allclose(score[:2], [0.5 * 0.1 / 40, 0.3 * 0.3 / 50])
    assert score[2] == math.inf  # saves time and takes no bytes
    assert score[3] == 0.0  # saves nothing
    np.testing.assert_allclose(additive_value_s(demand), [0.5 * 0.1, 0.3 * 0.2, 0.1 * 0.05, 0.0])


def test_path_score_with_one_prompt_length_is_the_papers():
    demand = random_demand(3, input_tokens=np.full(6, 4000))
    a, b = demand.prefill.linear_s, demand.prefill.quadratic_s

    def g(n):
        return a * n + b * n**2

    for v in range(demand.num_vertices):
        size = demand.total_bytes(demand.path(v))
        saved = g(4000) - g(4000 - demand.depth_tokens[v])
        assert path_score(demand)[v] == pytest.approx(demand.through_share[v] * saved / size)


def renewal_hits(rate, draw_lifetime, requests, rng):
    """Which requests hit when one that finds the content expired makes it anew."""
    now, expires = 0.0, 0.0
    hits = np.zeros(requests)
    for place, gap in enumerate(rng.exponential(1.0 / rate, requests).tolist()):
        now += gap
        if now < expires:
            hits[place] = 1.0
        else:
            expires = now + draw_lifetime()
    return hits


@pytest.mark.parametrize("law", ["fixed", "exponential"])
@pytest.mark.parametrize(("rate", "lifetime"), [(2.0, 0.25), (1.0, 3.0)])
def test_hit_share_is_that_of_the_renewal_process(law, rate, lifetime):
    rng = np.random.default_rng(7)
    draw = (lambda: lifetime) if law == "fixed" else (lambda: rng.exponential(lifetime))
    batches = renewal_hits(rate, draw, 200_000, rng).reshape(50, -1).mean(axis=1)
    error = batches.std(ddof=1) / math.sqrt(50)
    assert error < 2e-3
    assert abs(batches.mean() - hit_share(rate, lifetime)) < 4 * error


def test_hit_share_at_the_ends():
    assert hit_share(3.0, math.inf) == 1.0
    assert hit_share(0.0, math.inf) == 1.0
    assert hit_share(0.0, 1.0) == 0.0
    np.testing.assert_allclose(
        hit_share([1.0, 2.0], [[1.0], [2.0]]), [[1 / 2, 2 / 3], [2 / 3, 0.8]]
    )


def test_a_nested_vertex_is_void_when_an_ancestor_changes():
    # 0 - 1 and 0 - 2, with contents that change at memoryless times: simulated version by version.
    demand = ForestDemand(
        parent=[-1, 0, 0],
        depth_tokens=[100, 300, 400],
        bytes=[1, 1, 1],
        type_vertex=[0, 1, 2],
        share=[0.2, 0.3, 0.5],
        input_tokens=[1000] * 3,
        prefill=Prefill(linear_s=1e-3),
        lifetime_s=[2.0, 1.0, math.inf],
    )
    rate, requests = 4.0, 200_000
    rng = np.random.default_rng(3)
    version = [0, 0, 0]
    computed: list[tuple[int, ...] | None] = [None] * 3
    found = np.zeros(3)
    asked = np.zeros(3)
    saved = 0.0
    gaps = rng.exponential(1.0 / rate, requests)
    kinds = rng.choice(3, requests, p=demand.share)
    changes = rng.poisson(gaps[:, None] / demand.lifetime_s)
    for kind, change in zip(kinds.tolist(), changes.tolist(), strict=True):
        version = [a + b for a, b in zip(version, change, strict=True)]
        hit = 0
        for vertex in demand.path(kind):
            state = tuple(version[u] for u in demand.path(vertex))
            asked[vertex] += 1
            if computed[vertex] == state:
                found[vertex] += 1
                hit = int(demand.depth_tokens[vertex])
            computed[vertex] = state
        saved += 1e-3 * hit
    np.testing.assert_allclose(found / asked, valid_share(demand, rate), atol=8e-3)
    assert saved / requests == pytest.approx(lifetime_value_s(demand, rate).sum(), rel=0.01)


def test_lifetime_value_goes_to_the_additive_one():
    demand = random_demand(1)
    np.testing.assert_array_equal(lifetime_value_s(demand, 0.0), additive_value_s(demand))
    mortal = random_demand(1, lifetime_s=10.0)
    shares = [valid_share(mortal, rate) for rate in (0.1, 1.0, 10.0, 1e9)]
    assert all((a <= b).all() for a, b in pairwise(shares))
    used = mortal.through_share > 0
    assert (shares[0][used] < 1).all()
    np.testing.assert_allclose(shares[-1][used], 1.0, atol=1e-6)
    np.testing.assert_allclose(lifetime_value_s(mortal, 1e9), additive_value_s(demand), rtol=1e-6)
    assert (lifetime_value_s(mortal, 0.0) == 0).all()


@pytest.mark.parametrize("rate", [-1.0, math.nan, math.inf, True, "1"])
def test_rates_are_checked(rate):
    with pytest.raises(ValueError, match=r"^requests_per_s is .*must be"):
        valid_share(random_demand(0), rate)
    with pytest.raises(ValueError, match=r"^requests_per_s is .*must be"):
        hit_share(rate, 1.0)


@pytest.mark.parametrize("lifetime", [0.0, 1e-320, -1.0, math.nan, "1"])
def test_lifetimes_are_checked(lifetime):
    with pytest.raises(ValueError, match=r"^lifetime_s is .*must be"):
        hit_share(1.0, lifetime)
