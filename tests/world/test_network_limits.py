"""Fields of a network that no fleet can have."""

import math

import numpy as np
import pytest

from tests.analytic.networks import paper_network

NUMBERS = (
    "density_per_km2",
    "request_intensity",
    "prefill_linear_s",
    "prefill_quadratic_s",
    "decode_occupancy_s",
    "radio_xi",
    "radio_alpha",
    "radio_base_s",
    "prefill_floor_s",
    "service_scv",
)


@pytest.mark.parametrize("field", NUMBERS)
@pytest.mark.parametrize("value", [True, np.True_, "3", None, 1j, math.nan, math.inf, -1.0, 1e300])
def test_numbers(field, value):
    with pytest.raises(ValueError, match=rf"{field} is .*: must be"):
        paper_network(**{field: value})


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("density_per_km2", 1e-300, "density_per_km2 is 1e-300: must be finite and at least 1e-12"),
        ("radio_alpha", 101, "radio_alpha is 101: must be finite and at least 0.1, at most 100"),
        (
            "concurrency",
            [1e30, 5, 5],
            r"concurrency\[0\] is 1e\+30: must be a whole number .* 1000",
        ),
        ("concurrency", [1e15, 5, 5], r"concurrency\[0\] is 1e\+15: .* at most 1000000"),
        ("concurrency", [True] * 3, "concurrency is .*: must be an array of numbers"),
        ("concurrency", ["16", "12", "9"], "concurrency is .*: must be an array of numbers"),
        ("concurrency", [[1, 2], [3]], "concurrency is .*: must be an array of numbers"),
        ("profile_probabilities", [0, 0, 0], "profile_probabilities sums to 0.0: must sum to 1"),
        ("profile_probabilities", [True, False, False], "must be an array of numbers"),
        ("profile_probabilities", [], r"profile_probabilities has shape \(0,\)"),
        ("type_probabilities", [math.nan, 1], r"type_probabilities\[0\] is nan"),
        ("input_tokens", [1e300, 4096], r"input_tokens\[0\] is 1e\+300"),
        ("hit_tokens", None, "hit_tokens is None: must be an array of numbers"),
        ("hit_tokens", [[0, 0], [0, math.nan], [0, 0]], r"hit_tokens\[1, 1\] is nan"),
        ("state_bytes", [0, 1e30, 0], r"state_bytes\[1\] is 1e\+30"),
        ("prefill_s", [[1e300, 1]] * 3, r"prefill_s\[0, 0\] is 1e\+300"),
        ("prefill_linear_s", 1e6, r"occupancy_s\[.*\] is .*: prefill plus decode must .* 1e\+09 s"),
        ("servable", "yes", "servable is 'yes'"),
        ("servable", [True, False], "servable has shape"),
        ("attention", np.array(["residual", "context"]), "attention is .*: must be one of"),
    ],
)
def test_fields(field, value, message):
    with pytest.raises(ValueError, match=message):
        paper_network(**{field: value})


def test_what_counts_as_a_number():
    net = paper_network(
        density_per_km2=np.float32(2),
        radio_xi=np.array(0.5),
        concurrency=[1_000_000, 2, 3],
        servable=np.ones((3, 2), bool),
    )
    assert (net.density_per_km2, net.radio_xi, net.concurrency[0]) == (2.0, 0.5, 1_000_000)
    assert type(net.radio_xi) is float
