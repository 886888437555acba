"""Request traces: read them, measure them, build scenarios from them."""

from edgegym.traces.build import build_from_trace, scenario_from_trace
from edgegym.traces.options import BuildOptions
from edgegym.traces.reader import read_trace
from edgegym.traces.replay import ReplayRequests, TraceBuild, write_replaying_scenario
from edgegym.traces.report import BuildReport
from edgegym.traces.statistics import TraceStatistics, trace_statistics
from edgegym.traces.trace import Trace, TraceError

__all__ = [
    "BuildOptions",
    "BuildReport",
    "ReplayRequests",
    "Trace",
    "TraceBuild",
    "TraceError",
    "TraceStatistics",
    "build_from_trace",
    "read_trace",
    "scenario_from_trace",
    "trace_statistics",
    "write_replaying_scenario",
]
