"""The discrete-event simulation of a fleet: the ground truth of every environment."""

from edgegym.simulator.asking import AskingFleet
from edgegym.simulator.calibration import (
    Calibration,
    RejectedPaths,
    calibrate,
    sample_rejected_paths,
)
from edgegym.simulator.counterfactual import (
    Counterfactual,
    replay_counterfactual,
    replay_counterfactuals,
)
from edgegym.simulator.fleet import Fleet
from edgegym.simulator.full.user_router import RuleError, UserRouter
from edgegym.simulator.moves import IllegalMove
from edgegym.simulator.record_files import NpzSink, ParquetSink, read_records
from edgegym.simulator.records import ArraySink, RecordSink, RecordTable
from edgegym.simulator.state import FleetState
from edgegym.simulator.window import WindowStats

__all__ = [
    "ArraySink",
    "AskingFleet",
    "Calibration",
    "Counterfactual",
    "Fleet",
    "FleetState",
    "IllegalMove",
    "NpzSink",
    "ParquetSink",
    "RecordSink",
    "RecordTable",
    "RejectedPaths",
    "RuleError",
    "UserRouter",
    "WindowStats",
    "calibrate",
    "read_records",
    "replay_counterfactual",
    "replay_counterfactuals",
    "sample_rejected_paths",
]
