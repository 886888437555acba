"""Each rule of ``check_scenario`` can be broken, and the message says what to do."""

import pytest

from edgegym.testing import CheckFailed, check_scenario
from edgegym.world import preset

TOY = preset("toy")


def failing(overrides: dict, rule: str, words: str, **kwargs) -> None:
    with pytest.raises(CheckFailed, match=words) as caught:
        check_scenario(TOY.with_overrides(overrides), seeds=(0,), epochs=6, **kwargs)
    assert [finding.rule for finding in caught.value.report.broken] == [rule]


def test_the_toy_passes_with_numbers():
    report = check_scenario(TOY, seeds=(0,), epochs=8)
    assert report.ok
    assert "static 0.000" in report["room"].message
    assert "0.23 of the critical" in report["stable"].message
    assert report["prefill"].level == "advice"  # slots share no GPU there
    assert str(report).startswith("scenario 'toy'\n")


def test_a_target_that_nobody_can_meet():
    failing(
        {"objective.ttft_target_s": 0.2},
        "feasible",
        r"'prompt_a' needs 0\.27\d s next to an idle node .* its target is 0.2 s: raise the target",
    )


def test_a_load_that_nobody_can_serve():
    failing({"demand.rate_per_node": 60.0}, "stable", r"times what the fleet can serve: lower")


def test_a_budget_that_pays_no_move():
    failing(
        {"migration.burst_bytes": 2**20, "profiles": TOY.document()["profiles"][1:]}
        | {"initial.mix": {"hold_a": 1.0}},
        "moves",
        r"the bucket holds at most 1048576: raise migration\.burst_bytes",
    )


def test_caches_that_nobody_can_place():
    failing(
        {"cache": {"kind": "lru", "budget_bytes": 2**30}},
        "moves",
        "a placement policy can only watch",
    )


def test_nothing_to_gain():
    failing({"objective.ttft_target_s": 30.0}, "room", "nearly all is served in time anyway")
    failing({}, "room", "nothing helps", least_room=1.0)


def test_what_is_allowed_but_perhaps_not_meant():
    loose = TOY.with_overrides({"objective.ttft_target_s": 1.6, "demand.rate_per_node": 7.0})
    report = check_scenario(loose, seeds=(0,), epochs=6, least_room=0.0)
    assert "without any cached prefix" in report["prefixes matter"].message
    poor = TOY.with_overrides({"migration.burst_bytes": 6 * 2**30})
    with pytest.raises(CheckFailed) as caught:
        check_scenario(poor, seeds=(0,), epochs=6)
    assert caught.value.report["moves"].level == "advice"
    assert "it can never be made" in caught.value.report["moves"].message


def test_arguments_are_checked():
    with pytest.raises(ValueError, match="epochs"):
        check_scenario(TOY, epochs=0)
    with pytest.raises(ValueError, match="least_room"):
        check_scenario(TOY, least_room=2.0)
