"""A fleet seen as tiers: the input of the analytic model.

A tier is the set of nodes that hold one cache profile. Nodes form a Poisson point process, so a
tier is an independent thinning of it, and the whole fleet is described by densities, hit depths and
slots.
"""

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

_PROBABILITY_TOLERANCE = 1e-9
# Far beyond every real fleet, and within what the integrals can tell apart.
_SMALLEST, _LARGEST = 1e-12, 1e12
_LEAST_ALPHA, _LARGEST_ALPHA = 0.1, 100.0
_LONGEST_S = 1e9
_MOST_SLOTS = 10**6
_MOST_BYTES = 10**18


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    array.setflags(write=False)
    return array


def checked_number(
    name: str, value: Any, minimum: float, maximum: float, *, strict: bool = False
) -> float:
    """Return `value` as a float from (or above) `minimum` to `maximum`, or say what is wrong."""
    if isinstance(value, bool | np.bool_) or not isinstance(
        value, int | float | np.integer | np.floating
    ):
        if not (isinstance(value, np.ndarray) and value.ndim == 0 and value.dtype.kind in "iuf"):
            raise ValueError(f"{name} is {value!r}: must be a number")
        value = value.item()
    if isinstance(value, np.floating):
        # Numbers of few bits overflow where they are compared with a large bound.
        value = float(value)
    above = value > minimum if strict else value >= minimum
    if not (above and value <= maximum):
        rule = "greater than" if strict else "at least"
        raise ValueError(
            f"{name} is {value!r}: must be finite and {rule} {minimum:g}, at most {maximum:g}"
        )
    return float(value)


def checked_whole(name: str, value: Any, minimum: int, maximum: int) -> int:
    """Return `value` as an int from `minimum` to `maximum`, or say what is wrong with it."""
    whole = isinstance(value, int | np.integer) or (
        isinstance(value, float | np.floating) and math.isfinite(value) and value == int(value)
    )
    if isinstance(value, bool) or not whole or not minimum <= value <= maximum:
        raise ValueError(
            f"{name} is {value!r}: must be a whole number of at least {minimum}, at most {maximum}"
        )
    return int(value)


def checked_choice(name: str, value: Any, options: tuple[str, ...]) -> None:
    """Refuse what is not one of these words."""
    if not (isinstance(value, str) and value in options):
        raise ValueError(f"{name} is {value!r}: must be one of {', '.join(options)}")


def checked_numbers(name: str, value: Any, axes: str, *, kinds: str = "iuf") -> FloatArray:
    """Return a float64 copy of an array of numbers; text and truth values are none."""
    try:
        array = np.asarray(value)
    except (TypeError, ValueError):
        raise ValueError(f"{name} is {value!r}: must be an array of numbers {axes}") from None
    if array.dtype.kind not in kinds:
        raise ValueError(f"{name} is {value!r}: must be an array of numbers {axes}")
    return array.astype(np.float64)


def checked_wholes(
    name: str, value: Any, axes: str, ndim: int, minimum: int, maximum: int
) -> IntArray:
    """Return an int64 copy of an array of whole numbers, or say which entry is wrong.

    Integers stay what they are, also beyond the 2^53 up to which float64 tells them apart.
    """
    array = checked_numbers(name, value, axes)
    if array.ndim != ndim:
        raise ValueError(f"{name} has shape {array.shape}: must be {axes}")
    given = np.asarray(value)
    accepted = (array >= minimum) & (array <= maximum) & (array == np.floor(array))
    rule = f"must be a whole number of at least {minimum}, at most {maximum:g}"
    _require(name, given, accepted, rule)
    return given.astype(np.int64)


def _array(
    name: str, value: Any, shape: tuple[int | None, ...], axes: str, *, kinds: str = "iuf"
) -> FloatArray:
    """Return a float64 copy of `value` with this shape (None: any length above 0)."""
    array = checked_numbers(name, value, axes, kinds=kinds)
    wrong = array.ndim != len(shape) or any(
        n == 0 or (m is not None and n != m) for n, m in zip(array.shape, shape, strict=False)
    )
    if wrong:
        expected = tuple("any" if m is None else m for m in shape)
        raise ValueError(f"{name} has shape {array.shape}: must be {axes} with shape {expected}")
    return array


def _require(name: str, array: NDArray[Any], accepted: NDArray[np.bool_], rule: str) -> None:
    """Raise an error that names the first refused entry."""
    refused = np.argwhere(~accepted)
    if len(refused):
        index = tuple(int(i) for i in refused[0])
        where = ", ".join(map(str, index))
        raise ValueError(f"{name}[{where}] is {array[index]:g}: {rule}")


def _non_negative(name: str, value: Any, shape: tuple[int | None, ...], axes: str) -> FloatArray:
    array = _array(name, value, shape, axes)
    rule = f"must be finite and at least 0, at most {_LARGEST:g}"
    _require(name, array, (array >= 0) & (array <= _LARGEST), rule)
    return array


def _probabilities(name: str, value: Any, size: int | None, axes: str) -> FloatArray:
    array = _non_negative(name, value, (size,), axes)
    total = float(array.sum())
    if abs(total - 1.0) > _PROBABILITY_TOLERANCE:
        raise ValueError(f"{name} sums to {total!r}: must sum to 1")
    return array


def _whole(name: str, value: Any, size: int, minimum: int, maximum: int) -> IntArray:
    array = _array(name, value, (size,), "[S]")
    accepted = (array == np.floor(array)) & (array >= minimum) & (array <= maximum)
    rule = f"must be a whole number of at least {minimum}, at most {maximum}"
    _require(name, array, accepted, rule)
    return array.astype(np.int64)


@dataclass(frozen=True, kw_only=True, eq=False)
class TieredNetwork:
    """A fleet of edge nodes as tiers of one cache profile each.

    Lists and scalars are accepted; arrays are kept as read-only float64 or int64. S is the number
    of profiles, Q the number of request types; arrays over both are ``[S, Q]``, profile first.
    ``dataclasses.replace`` gives a changed copy and works out the prefill times anew, unless
    `prefill_s` was given.

    Parameters
    ----------
    density_per_km2 : float
        Nodes per km², at least 1e-12.
    request_intensity : float
        Requests per second and km².
    profile_probabilities : array_like [S]
        Share of the nodes in each tier; sums to 1.
    concurrency : array_like [S]
        Requests that a node runs at once, from 1 to 1,000,000.
    input_tokens : array_like [Q]
        Prompt length, at least 1.
    hit_tokens : array_like [S, Q]
        Tokens of a prompt whose state the profile holds, from 0 to ``input_tokens - 1``: the last
        token is always computed, to emit one.
    type_probabilities : array_like [Q]
        Share of the requests of each type; sums to 1.
    prefill_linear_s, prefill_quadratic_s : float
        Prefill time of n tokens is ``linear * n + quadratic * n**2``, in seconds.
    decode_occupancy_s : float or array_like [Q]
        Time in a slot after the first token.
    radio_xi, radio_alpha, radio_base_s : float
        Radio latency at r km is ``base + xi * r**alpha`` seconds; xi at least 1e-12, alpha
        from 0.1 to 100.
    attention : {"residual", "context"}
        Whether the new tokens attend to each other only, or also to the cached ones.
    prefill_floor_s : float
        The linear part is at least this.
    service_scv : float
        Squared coefficient of variation of the occupancy; waits scale by ``(1 + scv) / 2``
        (Allen-Cunneen; 1 is the exponential law, 0 a constant).
    servable : array_like of bool [S, Q], optional
        Which tiers may serve which types; all by default.
    state_bytes : array_like [S], optional
        Bytes of persistent state of each profile; needed only for memory budgets.
    prefill_s : array_like [S, Q], optional
        Prefill times to use instead of the formula. Afterwards the times in use, either way.

    Raises
    ------
    ValueError
        If a field breaks its rule; the message names the field, the value and the rule.

    Notes
    -----
    No number may be above 1e12, no occupancy above 1e9 seconds.
    """

    density_per_km2: float
    request_intensity: float
    profile_probabilities: FloatArray
    concurrency: IntArray
    input_tokens: FloatArray
    hit_tokens: FloatArray
    type_probabilities: FloatArray
    prefill_linear_s: float
    prefill_quadratic_s: float
    decode_occupancy_s: FloatArray
    radio_xi: float
    radio_alpha: float
    radio_base_s: float
    attention: Literal["residual", "context"] = "residual"
    prefill_floor_s: float = 0.0
    service_scv: float = 1.0
    servable: BoolArray | None = None
    state_bytes: IntArray | None = None
    prefill_s: FloatArray = field(default=cast("FloatArray", None))
    # Tells a given prefill_s from a computed one in a copy made by dataclasses.replace.
    _formula_prefill_s: FloatArray | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        given_prefill = None if self.prefill_s is self._formula_prefill_s else self.prefill_s
        fields = self._validated_scalars() | self._validated_arrays()
        for name, value in fields.items():
            self._set(name, value)
        formula = _read_only(self._prefill_time(self.hit_tokens))
        if given_prefill is None:
            self._set("_formula_prefill_s", formula)
            self._set("prefill_s", formula)
        else:
            given = _non_negative("prefill_s", given_prefill, formula.shape, "[S, Q]")
            self._set("_formula_prefill_s", None)
            self._set("prefill_s", _read_only(given))
        accepted = (self.occupancy_s > 0) & (self.occupancy_s <= _LONGEST_S)
        rule = f"prefill plus decode must exceed 0 and be at most {_LONGEST_S:g} s"
        _require("occupancy_s", self.occupancy_s, accepted, rule)

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    def _validated_scalars(self) -> dict[str, Any]:
        checked_choice("attention", self.attention, ("residual", "context"))
        positive = ("density_per_km2", "radio_xi")
        non_negative = (
            "request_intensity",
            "prefill_linear_s",
            "prefill_quadratic_s",
            "radio_base_s",
            "prefill_floor_s",
            "service_scv",
        )
        scalars = {
            name: checked_number(
                name, getattr(self, name), _SMALLEST if name in positive else 0.0, _LARGEST
            )
            for name in positive + non_negative
        }
        alpha = checked_number("radio_alpha", self.radio_alpha, _LEAST_ALPHA, _LARGEST_ALPHA)
        return scalars | {"radio_alpha": alpha}

    def _validated_arrays(self) -> dict[str, Any]:
        mix = _probabilities("profile_probabilities", self.profile_probabilities, None, "[S]")
        shares = _probabilities("type_probabilities", self.type_probabilities, None, "[Q]")
        shape = (len(mix), len(shares))
        lengths = _array("input_tokens", self.input_tokens, (shape[1],), "[Q]")
        rule = f"must be at least 1, at most {_LARGEST:g}"
        _require("input_tokens", lengths, (lengths >= 1) & (lengths <= _LARGEST), rule)
        hits = _non_negative("hit_tokens", self.hit_tokens, shape, "[S, Q]")
        rule = "must leave at least one of the type's input_tokens to compute"
        _require("hit_tokens", hits, hits <= lengths - 1, rule)
        decode: Any = self.decode_occupancy_s
        if np.ndim(decode) == 0:
            decode = np.full(shape[1], checked_number("decode_occupancy_s", decode, 0.0, _LARGEST))
        decode = _non_negative("decode_occupancy_s", decode, (shape[1],), "a scalar or [Q]")
        arrays: dict[str, NDArray[Any]] = {
            "profile_probabilities": mix,
            "type_probabilities": shares,
            "input_tokens": lengths,
            "hit_tokens": hits,
            "decode_occupancy_s": decode,
            "concurrency": _whole("concurrency", self.concurrency, shape[0], 1, _MOST_SLOTS),
        }
        if self.state_bytes is not None:
            arrays["state_bytes"] = _whole(
                "state_bytes", self.state_bytes, shape[0], 0, _MOST_BYTES
            )
        if self.servable is not None:
            arrays["servable"] = self._validated_servable(shape)
        return {name: _read_only(array) for name, array in arrays.items()}

    def _validated_servable(self, shape: tuple[int, int]) -> BoolArray:
        servable = _array("servable", self.servable, shape, "[S, Q]", kinds="biuf")
        _require("servable", servable, (servable == 0) | (servable == 1), "must be true or false")
        mask = servable.astype(np.bool_)
        orphans = np.flatnonzero(~mask.any(axis=0))
        if len(orphans):
            raise ValueError(f"servable[:, {orphans[0]}] is all false: some profile must serve it")
        return mask

    def _prefill_time(self, hit_tokens: FloatArray) -> FloatArray:
        """Prefill time [11] of prompts with this many tokens cached, in seconds."""
        computed = self.input_tokens - hit_tokens
        linear = np.maximum(self.prefill_linear_s * computed, self.prefill_floor_s)
        if self.attention == "residual":
            pairs = computed**2
        else:
            pairs = self.input_tokens**2 - hit_tokens**2
        return linear + self.prefill_quadratic_s * pairs

    def with_mix(self, profile_probabilities: FloatArray) -> "TieredNetwork":
        """Return the same fleet with other shares of the profiles, ``[S]``."""
        return replace(self, profile_probabilities=profile_probabilities)

    @property
    def num_profiles(self) -> int:
        """Number of profiles S."""
        return len(self.profile_probabilities)

    @property
    def num_types(self) -> int:
        """Number of request types Q."""
        return len(self.type_probabilities)

    @cached_property
    def tier_density(self) -> FloatArray:
        """Nodes of each tier per km², ``[S]``."""
        return _read_only(self.density_per_km2 * self.profile_probabilities)

    @cached_property
    def occupancy_s(self) -> FloatArray:
        """Time that a request holds a slot [13]: prefill plus decode, ``[S, Q]`` in seconds."""
        return _read_only(self.prefill_s + self.decode_occupancy_s)

    @cached_property
    def cold_prefill_s(self) -> FloatArray:
        """Prefill time with nothing cached, ``[Q]`` in seconds.

        With given `prefill_s`, the largest of the formula and of the given times: no profile is
        slower than an empty cache.
        """
        cold = self._prefill_time(np.zeros(self.num_types))
        return _read_only(np.maximum(cold, self.prefill_s.max(axis=0)))

    @cached_property
    def saving_s(self) -> FloatArray:
        """Prefill time that the cached tokens save [6], ``[S, Q]`` in seconds."""
        return _read_only(self.cold_prefill_s - self.prefill_s)

    @cached_property
    def can_serve(self) -> BoolArray:
        """Which tiers may serve which types, ``[S, Q]``: `servable`, or all where it is None."""
        if self.servable is not None:
            return self.servable
        return _read_only(np.ones(self.prefill_s.shape, dtype=np.bool_))
