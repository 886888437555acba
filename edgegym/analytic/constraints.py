"""The mixes of profiles that a placement may choose from: a simplex, a budget and bounds [49]."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edgegym.world.network import TieredNetwork, checked_number, checked_numbers

FloatArray = NDArray[np.float64]

_SLACK = 1e-9
_ROOT_STEPS = 200
# A share so small that it counts as some nodes, but no fewer.
_TRACE = 1e-8
_LEAST_SHARE = 1e-12
_LARGEST = 1e30


def _bound(name: str, value: ArrayLike | None, default: float, size: int) -> FloatArray:
    bound = checked_numbers(name, default if value is None else value, "[S] or one for all")
    if bound.shape not in ((), (size,)):
        raise ValueError(f"{name} has shape {bound.shape}: must be a number or [S] = ({size},)")
    bound = np.broadcast_to(bound, (size,)).copy()
    refused = np.flatnonzero(~((bound >= 0) & (bound <= 1)))
    if len(refused):
        raise ValueError(f"{name}[{refused[0]}] is {bound[refused[0]]:g}: must be from 0 to 1")
    return bound


@dataclass(frozen=True, eq=False)
class MixConstraints:
    """Floors, caps and a memory budget on the shares of the profiles.

    Build with :meth:`for_network`, which refuses sets that no mix satisfies.

    Attributes
    ----------
    minimum, maximum : float64 [S]
        Bounds on each share.
    weight : float64 [S]
        Bytes of each profile over the budget, so that the budget reads ``weight @ mix <= 1``; zeros
        without a budget.
    """

    minimum: FloatArray
    maximum: FloatArray
    weight: FloatArray

    @classmethod
    def for_network(
        cls,
        net: TieredNetwork,
        budget_bytes: float | None,
        minimum: ArrayLike | None,
        maximum: ArrayLike | None,
    ) -> "MixConstraints":
        """Return checked constraints.

        Parameters
        ----------
        net : TieredNetwork
        budget_bytes : float, optional
            Mean bytes of persistent state per node; needs ``net.state_bytes``.
        minimum, maximum : array_like [S] or float, optional
            Floors and caps of the shares.

        Raises
        ------
        ValueError
            If an argument breaks its rule or no mix satisfies them all.
        """
        size = net.num_profiles
        low = _bound("minimum", minimum, 0.0, size)
        high = _bound("maximum", maximum, 1.0, size)
        crossed = np.flatnonzero(low > high)
        if len(crossed):
            s = crossed[0]
            raise ValueError(
                f"minimum[{s}] is {low[s]:g}: must be at most maximum[{s}] = {high[s]:g}"
            )
        if low.sum() > 1 + _SLACK:
            raise ValueError(f"minimum sums to {low.sum():g}: must be at most 1")
        if high.sum() < 1 - _SLACK:
            raise ValueError(f"maximum sums to {high.sum():g}: must be at least 1")
        weight = np.zeros(size)
        if budget_bytes is not None:
            if net.state_bytes is None:
                raise ValueError("budget_bytes is given: the network must have state_bytes")
            budget_bytes = checked_number("budget_bytes", budget_bytes, 0.0, _LARGEST)
            cheapest = cheapest_mix_bytes(net.state_bytes, low, high)
            if cheapest > budget_bytes * (1 + _SLACK):
                raise ValueError(
                    f"budget_bytes is {budget_bytes:g}: the cheapest mix within the bounds "
                    f"holds {cheapest:g} bytes per node"
                )
            # Below that, the budget is one of nothing: shares are not told apart any finer.
            if budget_bytes > _LEAST_SHARE * net.state_bytes.max():
                weight = net.state_bytes / budget_bytes
            else:
                high = np.where(net.state_bytes > 0, low, high)
        return cls(low, high, weight)

    def allows(self, mix: FloatArray) -> bool:
        """Return whether a mix satisfies the constraints, up to rounding."""
        within = (mix >= self.minimum - _SLACK).all() and (mix <= self.maximum + _SLACK).all()
        return bool(within and abs(mix.sum() - 1) <= _SLACK and self.weight @ mix <= 1 + _SLACK)

    def project(self, mix: FloatArray) -> FloatArray:
        """Return the nearest allowed mix [51]; `mix` itself if it is allowed."""
        if self.allows(mix):
            return mix.copy()
        nearest = self._project_bounds(mix)
        if self.weight @ nearest <= 1:
            return nearest
        return self._project_budget(mix)

    def _project_budget(self, mix: FloatArray) -> FloatArray:
        """Project where the budget binds: the bytes used fall piecewise linearly in their price."""

        def excess(price: float) -> float:
            return float(self.weight @ self._project_bounds(mix - price * self.weight)) - 1.0

        low, low_excess = 0.0, excess(0.0)
        high, high_excess = 1.0, excess(1.0)
        while high_excess > 1e-13 and high < 1e18:  # else the budget is just the cheapest mix
            low, low_excess = high, high_excess
            high *= 2.0
            high_excess = excess(high)
        side = 0
        for _ in range(_ROOT_STEPS):
            price = (low * high_excess - high * low_excess) / (high_excess - low_excess)
            if not low < price < high:
                price = 0.5 * (low + high)
            if not low < price < high or high_excess > 0:
                break
            found = excess(price)
            # Illinois: halve the stale end's value, or the root creeps in from one side.
            if found > 0:
                low, low_excess = price, found
                high_excess *= 0.5 if side == 1 else 1.0
                side = 1
            else:
                high, high_excess = price, found
                low_excess *= 0.5 if side == -1 else 1.0
                side = -1
                if found > -1e-15:
                    break
        return self._project_bounds(mix - high * self.weight)

    def reachable(self) -> NDArray[np.bool_]:
        """Return which profiles ``[S]`` have nodes in some allowed mix."""
        spare = 1.0 - self.minimum.sum() + self.minimum
        reached = np.minimum(self.maximum, spare) > _TRACE
        if self.weight.any():
            for s in np.flatnonzero(reached & (self.minimum <= _TRACE)):
                low = self.minimum.copy()
                low[s] = _TRACE
                reached[s] = cheapest_mix_bytes(self.weight, low, self.maximum) <= 1 + _SLACK
        return reached

    def _project_bounds(self, mix: FloatArray) -> FloatArray:
        """Project on simplex and bounds: the sum of the clipped shares falls in a common shift."""
        ends = np.sort(np.concatenate([mix - self.maximum, mix - self.minimum]))
        sums = np.clip(mix - ends[:, None], self.minimum, self.maximum).sum(axis=1)
        # The sums fall from the caps' to the floors', linearly between the ends.
        after = min(int(np.searchsorted(-sums, -1.0)), len(ends) - 1)
        before = max(after - 1, 0)
        drop = sums[before] - sums[after]
        part = (sums[before] - 1.0) / drop if drop > 0 else 0.0
        shift = ends[before] + part * (ends[after] - ends[before])
        shares = np.clip(mix - shift, self.minimum, self.maximum)
        # What rounding left goes to a share that is free to take it.
        rest = 1.0 - shares.sum()
        room = self.maximum - shares if rest > 0 else shares - self.minimum
        shares[np.argmax(room)] += rest
        return shares


def cheapest_mix_bytes(
    profile_bytes: NDArray[np.float64] | NDArray[np.int64], low: FloatArray, high: FloatArray
) -> float:
    """Return the fewest mean bytes per node of a mix within the bounds."""
    total = float(profile_bytes @ low)
    rest = 1.0 - low.sum()
    for s in np.argsort(profile_bytes):
        taken = min(rest, high[s] - low[s])
        total += taken * float(profile_bytes[s])
        rest -= taken
    return total
