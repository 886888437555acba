"""The law by which a node's load is spread around its mean: Weibull, of given relative variance.

Cells of a tier that competes with others are bounded by those, so their areas have lighter tails
than the gamma law that fits Poisson-Voronoi cells. The Weibull law is as skewed as the gamma law
where the relative variance is 1 and less below: at 0.14, the skewness is 0.2 (gamma: 0.75), and
that of simulated cells of such a tier 0.1 to 0.3. For one tier alone (0.28) it is 0.65, too small:
there the gamma law's 1.06 is the better (simulated: about 1).
"""

import math

import numpy as np
from numpy.typing import NDArray

from edgegym.jit import kernel

FloatArray = NDArray[np.float64]

_LEAST_SHAPE, _MOST_SHAPE = 0.12, 1e3
_HALVINGS = 60


@kernel
def weibull_shape(relative_variance):
    """Return the shape of the Weibull law with this variance over squared mean.

    Clipped to shapes from 0.12 (a relative variance above 1e8) to 1000 (below 2e-6).
    """
    low = math.log(_LEAST_SHAPE)
    high = math.log(_MOST_SHAPE)
    goal = math.log(1.0 + relative_variance)
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        inverse = math.exp(-middle)
        if math.lgamma(1.0 + 2.0 * inverse) - 2.0 * math.lgamma(1.0 + inverse) > goal:
            low = middle
        else:
            high = middle
    return math.exp(0.5 * (low + high))


@kernel
def unit_scale(shape):
    """Return the scale of the Weibull law of mean 1 and this shape."""
    return math.exp(-math.lgamma(1.0 + 1.0 / shape))


@kernel
def tilted_square(shape, mean):
    """Return E[X^2] of a Weibull law of mean 1 reweighted by the power of X that gives this mean.

    Who looks from inside a cell sees large cells more often. How much more for one type of request
    than for another is in the mean that it sees; a power of the load, as for the size-biased law,
    carries it over to the variance. A power of a Weibull variable is a gamma variable: the
    reweighted law has moments in closed form.
    """
    scale = unit_scale(shape)
    low = math.log(1e-9)
    high = math.log(1e9)
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        order = math.exp(middle)
        if scale * math.exp(math.lgamma(order + 1.0 / shape) - math.lgamma(order)) < mean:
            low = middle
        else:
            high = middle
    order = math.exp(0.5 * (low + high))
    return scale * scale * math.exp(math.lgamma(order + 2.0 / shape) - math.lgamma(order))


def equal_parts(relative_variance: float, parts: int) -> FloatArray:
    """Return the values of a Weibull law of mean 1 in equally likely parts, ``[parts]``, mean 1."""
    if relative_variance <= 0.0:
        return np.ones(parts)
    middles = (np.arange(parts) + 0.5) / parts
    values = (-np.log1p(-middles)) ** (1.0 / weibull_shape(relative_variance))
    return values / values.mean()
