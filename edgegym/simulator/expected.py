"""The expected demand of an episode at given times and places: what the stream draws from."""

import math

import numpy as np

from edgegym.jit import kernel
from edgegym.simulator.bursts import Bursts
from edgegym.simulator.compiling import borrow, inlined
from edgegym.simulator.intensity import (
    DemandModel,
    hotspot_centre_km,
    load_at,
    write_family_shares,
)
from edgegym.simulator.shaping import (
    FLASH_END_S,
    FLASH_FAMILY,
    FLASH_START_S,
    FLASH_X_KM,
    FLASH_Y_KM,
)
from edgegym.simulator.state import Floats

# Images further away than this many deviations count for nothing; a Gaussian that is wider than
# this many periods is uniform to all digits.
_REACH, _WIDE = 9.0, 2.0


@inlined
def _wrapped_density(away_km: float, sigma_km: float, period_km: float) -> float:
    if sigma_km > _WIDE * period_km:
        return 1.0 / period_km
    nearest = away_km - period_km * math.floor(away_km / period_km + 0.5)
    images = int(_REACH * sigma_km / period_km) + 1
    total = 0.0
    for image in range(-images, images + 1):
        z = (nearest + image * period_km) / sigma_km
        total += math.exp(-0.5 * z * z)
    return total / (sigma_km * math.sqrt(2.0 * math.pi))


@inlined
def _truncated_density(at_km: float, centre_km: float, sigma_km: float, length_km: float) -> float:
    scale = sigma_km * math.sqrt(2.0)
    inside = 0.5 * (math.erf((length_km - centre_km) / scale) + math.erf(centre_km / scale))
    if inside <= 0.0:
        return 0.0
    z = (at_km - centre_km) / sigma_km
    return math.exp(-0.5 * z * z) / (sigma_km * math.sqrt(2.0 * math.pi) * inside)


@inlined
def _spot_density(
    demand: DemandModel, x: float, y: float, centre_x: float, centre_y: float, sigma: float
) -> float:
    if demand.periodic:
        in_x = _wrapped_density(x - centre_x, sigma, demand.width_km)
        return in_x * _wrapped_density(y - centre_y, sigma, demand.height_km)
    in_x = _truncated_density(x, centre_x, sigma, demand.width_km)
    return in_x * _truncated_density(y, centre_y, sigma, demand.height_km)


@kernel
def write_intensity(
    demand: DemandModel,
    base_rate_per_s: float,
    flashes: Floats,
    bursts: Bursts,
    times: Floats,
    x_km: Floats,
    y_km: Floats,
    intensity: Floats,
) -> None:
    """Write the intensity of each family at some points of time and place.

    Parameters
    ----------
    demand : DemandModel
        The episode's demand.
    base_rate_per_s : float
        Over the region, before modulations.
    flashes : ndarray
        ``[n, 5]`` flash crowds, at least those of the given times.
    bursts : Bursts
        Of a span that holds the given times.
    times, x_km, y_km : ndarray
        ``[P]`` the points.
    intensity : ndarray
        ``[P, F]`` receives requests per second and km².
    """
    demand, flashes, bursts = borrow(demand), borrow(flashes), borrow(bursts)
    area = demand.width_km * demand.height_km
    shares = np.empty(len(demand.family_share))
    for point in range(len(times)):
        time, x, y = times[point], x_km[point], y_km[point]
        write_family_shares(demand, time, shares)
        load = base_rate_per_s * load_at(demand.diurnal, time, x)
        piece = np.searchsorted(bursts.start_s, time, side="right") - 1
        for family in range(len(shares)):
            place = 1.0 / area
            if demand.hotspot_order[family] >= 0:
                centre_x, centre_y = hotspot_centre_km(demand, family, time)
                spot = _spot_density(demand, x, y, centre_x, centre_y, demand.hotspot_sigma_km)
                share = demand.hotspot_concentration
                place = (1.0 - share) * place + share * spot
            level = bursts.level[piece, family] if len(bursts.start_s) > 0 else 1.0
            intensity[point, family] = load * shares[family] * level * place
        for flash in range(len(flashes)):
            if flashes[flash, FLASH_START_S] <= time < flashes[flash, FLASH_END_S]:
                centre_x, centre_y = flashes[flash, FLASH_X_KM], flashes[flash, FLASH_Y_KM]
                spot = _spot_density(demand, x, y, centre_x, centre_y, demand.flash_sigma_km)
                family = int(flashes[flash, FLASH_FAMILY])
                intensity[point, family] += base_rate_per_s * demand.flash_magnitude * spot
