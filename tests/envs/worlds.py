"""Random worlds and environments for properties that must hold in every one."""

from hypothesis import strategies as st

from edgegym.world import Scenario, preset

# Both event loops; one GPU or several; moves over links of their own or a shared one; failures.
_BASES = (
    "toy",
    "paper",
    "moving-hotspot",
    "flash-crowd",
    "node-failures",
    "mixed-fleet",
    "scarce-backhaul",
    "toolagent",
)
_CACHED = {"cache": {"kind": "lru", "budget_bytes": 2 * 10**9}}
_FAILING = {"mean_up_s": 10.0, "mean_down_s": 3.0}


@st.composite
def worlds(draw, bases: tuple[str, ...] = _BASES) -> Scenario:
    """Return a scenario: mixes, budgets, numbers of nodes, epochs and services at random."""
    base = preset(draw(st.sampled_from(bases)))
    held = draw(st.lists(st.sampled_from(base.profile_names), min_size=1, max_size=3, unique=True))
    migration = base.migration
    overrides = {
        "control.moves_per_epoch": draw(st.integers(1, 4)),
        "control.epoch_s": draw(st.sampled_from([0.5, 2.0, 8.0])),
        "control.horizon_epochs": draw(st.integers(2, 8)),
        "initial.warmup_s": draw(st.sampled_from([0.0, 3.0])),
        "initial.mix": dict.fromkeys(held, 1.0 / len(held)),
        "migration.burst_bytes": int(migration.burst_bytes * draw(st.sampled_from([1, 3, 50]))),
        "migration.budget_bytes_per_s": migration.budget_bytes_per_s
        * draw(st.sampled_from([0.01, 1.0, 40.0])),
        "objective.migration_weight": draw(st.sampled_from([0.0, 0.5])),
    }
    if draw(st.booleans()) and base.name != "toolagent":
        overrides["nodes.density_per_km2"] = draw(st.floats(1.0, 12.0)) / base.region.area_km2
    if base.name == "toy" and draw(st.booleans()):
        overrides |= _CACHED
    if base.name in {"node-failures", "mixed-fleet"}:
        overrides["failures"] = {"nodes": _FAILING}
    return base.with_overrides(overrides)


REWARDS = st.sampled_from(["coverage", "squashed_ttft", "goodput"])
SEEDS = st.integers(0, 2**32 - 1)


def budget_holds(spent: list[tuple[float, int]], scenario: Scenario) -> bool:
    """Return whether bytes at their times stay within the token bucket, over every interval."""
    burst, rate = scenario.migration.burst_bytes, scenario.migration.budget_bytes_per_s
    for first, (begin_s, _) in enumerate(spent):
        total = 0
        for now_s, price_bytes in spent[first:]:
            total += price_bytes
            if total > (burst + rate * (now_s - begin_s)) * (1 + 1e-12):
                return False
    return True
