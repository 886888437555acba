"""What a comparison was made of: versions, world, hardware figures and how far to trust them."""

import platform
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from edgegym.world.hardware import Hardware
    from edgegym.world.scenario import Scenario

_PACKAGES = (
    "edgegym",
    "gymnasium",
    "numba",
    "numpy",
    "scipy",
    "sb3-contrib",
    "stable-baselines3",
    "torch",
)


@dataclass(frozen=True)
class ExperimentCard:
    """How a comparison came about."""

    created: str
    """Time, ISO 8601, UTC."""
    versions: dict[str, str]
    """Of Python and of the packages that are installed."""
    machine: str
    """Operating system and processor."""
    episode: str
    """Length of an episode, its warm-up and the decisions in it."""
    target: str
    """What counts as covered."""
    hardware: str
    """The nodes' figures."""
    hardware_accuracy: str
    """How far they can be trusted."""
    workers: int
    """Worker processes; 0 if all was played in one process."""
    seconds: float
    """Wall time."""


def experiment_card(scenario: "Scenario", workers: int, seconds: float) -> ExperimentCard:
    """Return the card of a comparison that this process made just now.

    Parameters
    ----------
    scenario : Scenario
        The world.
    workers : int
        Worker processes.
    seconds : float
        Wall time.

    Returns
    -------
    ExperimentCard
        Plain text and numbers.
    """
    return ExperimentCard(
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        versions=_versions(),
        machine=f"{platform.system()} {platform.machine()}",
        episode=_episode(scenario),
        target=_target(scenario),
        hardware=_hardware(scenario),
        hardware_accuracy=_accuracy(scenario),
        workers=workers,
        seconds=round(seconds, 1),
    )


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue  # an extra that is not installed
    return found


def _episode(scenario: "Scenario") -> str:
    control = scenario.control
    moves = "one move" if control.moves_per_epoch == 1 else f"{control.moves_per_epoch} moves"
    return (
        f"{control.horizon_epochs} epochs of {control.epoch_s:g} s after "
        f"{scenario.initial.warmup_s:g} s of warm-up, at most {moves} per epoch"
    )


def _target(scenario: "Scenario") -> str:
    targets = sorted({float(target) for target in scenario.ttft_target_s})
    words = ", ".join(f"{target:g}" for target in targets)
    return f"time to first token within {words} s" + (" by type" if len(targets) > 1 else "")


def _hardware(scenario: "Scenario") -> str:
    if not scenario.nodes.classes:
        return _gpu(scenario, scenario.hardware)
    return "; ".join(
        f"{item.share:.0%} {item.name}: "
        + ("no GPU" if item.hardware is None else _gpu(scenario, item.hardware))
        for item in scenario.node_classes
    )


def _gpu(scenario: "Scenario", hardware: "Hardware") -> str:
    from edgegym.world.classes import sequence_bytes

    prefill = hardware.prefill
    return (
        f"{hardware.preset or 'own figures'}: {hardware.usable_bytes / 1e9:.1f} GB for state and "
        f"sequences, {sequence_bytes(scenario, hardware) / 1e9:.2f} GB per sequence, "
        f"{hardware.kv_bytes_per_token} bytes of KV per token; prefill of n new tokens "
        f"{prefill.linear_s:g} n + {prefill.quadratic_s:g} n² s ({prefill.attention} attention); "
        f"decode {hardware.decode.kind}"
    )


def _accuracy(scenario: "Scenario") -> str:
    from edgegym.world.hardware_presets import hardware_figures

    gpus = [item.hardware for item in scenario.node_classes if item.hardware is not None]
    sources = dict.fromkeys(
        "stated in the scenario, no measurement of a real node; see its description"
        if gpu.preset is None
        else hardware_figures(gpu.preset).accuracy
        for gpu in gpus
    )
    return "; ".join(sources)
