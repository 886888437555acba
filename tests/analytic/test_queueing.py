import math

import numpy as np
import pytest

from edgegym.analytic import erlang_b, erlang_c, mean_wait, wait_cdf


def stationary(servers, load, states):
    """Return the distribution of the number in an M/M/c system cut off at `states`."""
    ratios = [load / min(n, servers) for n in range(1, states)]
    weights = np.cumprod([1.0, *ratios])
    return weights / weights.sum()


@pytest.mark.twin
@pytest.mark.parametrize(("servers", "load"), [(1, 0.3), (1, 0.9), (3, 1.7), (9, 7.4), (16, 2.0)])
def test_against_the_stationary_distribution(servers, load):
    number = np.arange(3000)
    p = stationary(servers, load, len(number))
    assert erlang_c(servers, load) == pytest.approx(p[servers:].sum(), abs=1e-12)
    lossy = stationary(servers, load, servers + 1)
    assert erlang_b(servers, load) == pytest.approx(lossy[-1], abs=1e-12)
    queue = (p * np.maximum(number - servers, 0)).sum()
    assert mean_wait(servers, 2 * load, 2.0) == pytest.approx(queue / (2 * load), rel=1e-10)


def test_ten_thousand_servers():
    servers = 10_000
    assert erlang_c(servers, 9_000.0) < 1e-20
    # Halfin-Whitt: C -> 1 / (1 + beta * Phi(beta) / phi(beta)), beta = (1 - rho) * sqrt(c).
    beta = 0.5
    cdf = 0.5 * (1 + math.erf(beta / math.sqrt(2)))
    density = math.exp(-(beta**2) / 2) / math.sqrt(2 * math.pi)
    limit = 1 / (1 + beta * cdf / density)
    load = servers * (1 - beta / math.sqrt(servers))
    assert erlang_c(servers, load) == pytest.approx(limit, rel=0.01)
    assert mean_wait(servers, 9_990.0, 1.0) < 0.1


def test_wait_cdf_integrates_to_the_mean():
    w = np.linspace(0, 40, 400_001)
    tail = np.array([1 - wait_cdf(x, 3, 2.5, 1.0, 0.5) for x in w])
    mean = (tail[:-1] + tail[1:]).sum() / 2 * (w[1] - w[0])
    assert mean_wait(3, 2.5, 1.0, 0.5) == pytest.approx(mean, rel=1e-6)
    assert mean_wait(3, 2.5, 1.0, 0.5) == pytest.approx(0.75 * mean_wait(3, 2.5, 1.0))


def test_edges():
    assert erlang_c(4, 0.0) == 0.0
    assert erlang_c(4, 4.0) == 1.0
    assert mean_wait(4, 4.0, 1.0) == math.inf
    assert mean_wait(4, 0.0, 1.0) == 0.0
    assert wait_cdf(5.0, 4, 4.0, 1.0) == 0.0
    assert wait_cdf(-0.1, 4, 1.0, 1.0) == 0.0
    assert wait_cdf(math.inf, 4, 1.0, 1.0) == 1.0
    assert wait_cdf(-math.inf, 4, 1.0, 1.0) == 0.0


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64, np.int8])
def test_numbers_of_few_bits(kind):
    # Their comparison with a large bound would overflow.
    assert mean_wait(3, kind(2), kind(1), kind(0)) == mean_wait(3, 2.0, 1.0, 0.0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: erlang_b(0, 1.0), "servers is 0"),
        (lambda: erlang_c(2, -1.0), "load is -1.0"),
        (lambda: mean_wait(2, math.inf, 1.0), "arrival_rate is inf"),
        (lambda: mean_wait(2, 1.0, 0.0), "service_rate is 0.0"),
        (lambda: wait_cdf(1.0, 2, 1.0, 1.0, -1.0), "service_scv is -1.0"),
        (lambda: wait_cdf("1", 2, 1.0, 1.0), "wait_s is '1': must be a number"),
        (lambda: wait_cdf(None, 2, 1.0, 1.0), "wait_s is None: must be a number"),
        (lambda: wait_cdf(True, 2, 1.0, 1.0), "wait_s is True: must be a number"),
        (lambda: wait_cdf(math.nan, 2, 1.0, 1.0), "wait_s is nan: must be"),
        (lambda: wait_cdf(10**400, 2, 1.0, 1.0), "wait_s is 1000.*: must be"),
    ],
)
def test_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
