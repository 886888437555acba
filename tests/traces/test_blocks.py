import numpy as np
import pytest

from edgegym.profiles import CandidateProfile
from edgegym.traces.blocks import migration_block, service_block


def test_decode_times_scatter_as_generated_lengths_do():
    sigma = service_block("slots", 0.7)["sigma"]
    marks = np.exp(sigma * np.random.default_rng(0).standard_normal(400_000) - sigma**2 / 2)
    assert marks.mean() == pytest.approx(1.0, abs=0.01)
    assert marks.var() == pytest.approx(0.7, abs=0.03)
    assert service_block("slots", 0.0) == {"kind": "deterministic"}


@pytest.mark.parametrize(("output_scv", "output"), [(0.0, "fixed"), (0.9, "geometric")])
def test_engines_take_the_nearer_law_of_lengths(output_scv, output):
    assert service_block("engine", output_scv) == {"kind": "engine", "output": output}


def test_budget_pays_a_mean_profile_in_the_given_time():
    profiles = [CandidateProfile(str(size), (), (), size, (), 1) for size in (0, 100, 300)]
    assert migration_block(profiles, 20.0) == {"budget_bytes_per_s": 10.0, "burst_bytes": 600}
