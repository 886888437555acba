"""The blocks of the backhaul and of fetching: what they refuse, and why."""

import pytest

from edgegym.world import preset
from edgegym.world.errors import ScenarioError


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (
            {"backhaul.access_bytes_per_s": 1e9},
            r"backhaul.*access_bytes_per_s = 1e\+09.*sharing = 'shared'",
        ),
        (
            {"backhaul.restore_slowdown": 1.5},
            r"backhaul.*restore_slowdown = 1\.5.*restore_bytes_per_s",
        ),
        ({"backhaul.compression": 0.5}, r"backhaul\.compression"),
        ({"backhaul.layers": 0}, r"backhaul\.layers"),
        ({"fetch.controller": "sometimes"}, r"fetch\.controller"),
        ({"fetch.budget_share": 0.0}, r"fetch\.budget_share"),
        ({"fetch.advertise_s": 0.0}, r"fetch\.advertise_s"),
    ],
)
def test_impossible_transport_is_refused(overrides, message):
    with pytest.raises(ScenarioError, match=message):
        preset("paper").with_overrides(overrides)


def test_shared_link_with_everything():
    world = preset("paper").with_overrides(
        {
            "backhaul": {
                "rate_bytes_per_s": 50e9,
                "sharing": "shared",
                "access_bytes_per_s": 3e9,
                "compression": 3.5,
                "restore_bytes_per_s": 5e9,
                "restore_slowdown": 1.2,
                "layers": 32,
            },
            "fetch": {"controller": "joint", "advertise_s": 5.0, "budget_share": 0.8},
        }
    )
    assert world.with_overrides({}).backhaul.layers == 32
