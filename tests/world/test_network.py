import copy
import dataclasses
import pickle

import numpy as np
import pytest

from edgegym.world.network import TieredNetwork
from tests.analytic.networks import paper_network


def test_derived_values():
    net = paper_network(decode_occupancy_s=[0.5, 0.7])
    prefill = 2.5e-4 * 3840 + 1.4e-8 * 3840**2
    assert net.prefill_s[1, 1] == pytest.approx(prefill)
    assert net.occupancy_s[1, 1] == pytest.approx(prefill + 0.7)
    assert net.cold_prefill_s[0] == pytest.approx(2.5e-4 * 1024 + 1.4e-8 * 1024**2)
    np.testing.assert_allclose(net.saving_s, net.cold_prefill_s - net.prefill_s)
    np.testing.assert_allclose(net.tier_density, [0.4, 0.4, 0.2])
    assert net.concurrency.dtype == np.int64


def test_attention_to_the_context():
    net = paper_network(attention="context", prefill_floor_s=0.2)
    linear = max(2.5e-4 * 256, 0.2)
    assert net.prefill_s[2, 0] == pytest.approx(linear + 1.4e-8 * (1024**2 - 768**2))


def test_a_copy_works_out_its_prefill_anew():
    net = paper_network()
    slow = dataclasses.replace(net, prefill_linear_s=1e-3)
    assert slow.prefill_s[0, 0] > 1.0
    given = dataclasses.replace(net, prefill_s=np.full((3, 2), 0.3))
    assert (dataclasses.replace(given, prefill_linear_s=1e-3).prefill_s == 0.3).all()
    assert (given.cold_prefill_s >= 0.3).all()


def test_arrays_are_read_only_copies():
    mix = np.array([0.4, 0.4, 0.2])
    net = paper_network(profile_probabilities=mix)
    mix[0] = 9.0
    assert net.profile_probabilities[0] == 0.4
    with pytest.raises(ValueError, match="read-only"):
        net.profile_probabilities[0] = 1.0
    with pytest.raises(dataclasses.FrozenInstanceError):
        net.radio_xi = 2.0  # pyright: ignore[reportAttributeAccessIssue]


def test_pickle_and_copy():
    net = paper_network()
    for twin in (pickle.loads(pickle.dumps(net)), copy.deepcopy(net)):
        changed = dataclasses.replace(twin, prefill_linear_s=1e-3)
        assert changed.prefill_s[0, 0] > 1.0
        np.testing.assert_array_equal(twin.prefill_s, net.prefill_s)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("density_per_km2", 0.0, "density_per_km2 is 0.0: must be finite and at least 1e-12"),
        ("density_per_km2", "many", "density_per_km2 is 'many': must be a number"),
        ("request_intensity", -1.0, "request_intensity is -1.0: must be finite and at least 0"),
        ("radio_alpha", float("nan"), "radio_alpha is nan"),
        ("profile_probabilities", [0.5, 0.5, 0.1], "profile_probabilities sums to 1.1"),
        ("profile_probabilities", [1.2, 0.0, -0.2], r"profile_probabilities\[2\] is -0.2"),
        ("type_probabilities", [[1.0]], "type_probabilities has shape"),
        ("concurrency", [16, 0, 9], r"concurrency\[1\] is 0: must be a whole number of at least 1"),
        ("concurrency", [16, 1.5, 9], r"concurrency\[1\] is 1.5"),
        ("concurrency", [16, 12], "concurrency has shape"),
        ("input_tokens", [0.5, 4096], r"input_tokens\[0\] is 0.5: must be at least 1"),
        ("hit_tokens", [[0, 0], [0, 4096], [0, 0]], r"hit_tokens\[1, 1\] is 4096: must leave"),
        ("decode_occupancy_s", -0.1, "decode_occupancy_s is -0.1"),
        ("attention", "full", "attention is 'full'"),
        ("service_scv", -1.0, "service_scv is -1.0"),
        ("state_bytes", [0, -4, 7], r"state_bytes\[1\] is -4"),
        ("prefill_s", [[0.1, 0.1]], "prefill_s has shape"),
        ("servable", [[1, 0], [1, 0], [1, 0]], r"servable\[:, 1\] is all false"),
        ("servable", [[1, 2], [1, 0], [1, 0]], r"servable\[0, 1\] is 2: must be true or false"),
    ],
)
def test_refused(field, value, message):
    with pytest.raises(ValueError, match=message):
        paper_network(**{field: value})


def test_fields_are_keyword_only():
    with pytest.raises(TypeError):
        TieredNetwork(1.0)  # pyright: ignore[reportCallIssue]


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("density_per_km2", 1e300, "density_per_km2 is 1e\\+300: .*at most"),
        ("density_per_km2", True, "density_per_km2 is True: must be a number"),
        ("density_per_km2", "3", "density_per_km2 is '3': must be a number"),
        ("concurrency", [1e30, 5, 5], "concurrency\\[0\\] is 1e\\+30: .*1,?000,?000"),
        ("concurrency", [1e15, 5, 5], "concurrency\\[0\\] is 1e\\+15: .*1,?000,?000"),
    ],
)
def test_values_no_machine_can_work_with_are_refused(field, value, message):
    net = paper_network()
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(net, **{field: value})
