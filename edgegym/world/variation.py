"""Laws by which one field of a scenario is drawn anew for every episode."""

import math
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, ValidationError, model_validator

from edgegym.world.block import Block, plain_number
from edgegym.world.errors import scenario_error

if TYPE_CHECKING:
    from numpy.random import Generator

# A place between the ends of a range that is no round number: a field of whole numbers refuses it.
_BETWEEN = 0.381966

_Real = Annotated[float, Field(ge=-1e18, le=1e18), BeforeValidator(plain_number)]
_Whole = Annotated[int, Field(ge=-(10**18), le=10**18), BeforeValidator(plain_number)]


class _Law(Block):
    """One field and how its values are drawn."""

    path: str = Field(min_length=1)
    """Dotted path of the field, as ``demand.rate_per_node``; see ``Scenario.with_overrides``."""

    def __init__(self, **document: Any) -> None:
        try:
            super().__init__(**document)
        except ValidationError as error:
            raise scenario_error(error, document) from None

    @property
    def probes(self) -> tuple[Any, ...]:
        """Values that a scenario must accept, so that it will accept every one that is drawn."""
        raise NotImplementedError

    def draw(self, generator: "Generator") -> Any:
        """Return a value; each call takes the same number of numbers from the generator."""
        raise NotImplementedError

    def number(self, value: Any) -> int | float:
        """Return a drawn value as a finite number, for ``info``."""
        return value


class _Range(_Law):
    """Values between two ends."""

    low: _Real
    """Least value."""
    high: _Real
    """Largest value."""

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if not self.low < self.high:
            raise ValueError(
                f"vary '{self.path}': low = {self.low:g} must be less than high = {self.high:g}"
            )
        return self

    def at(self, part: float) -> float:
        """Return the value below which a part of all draws lie."""
        raise NotImplementedError

    @property
    def probes(self) -> tuple[float, ...]:
        """Both ends and a value between them."""
        return self.low, self.at(_BETWEEN), self.high

    def draw(self, generator: "Generator") -> float:
        """Return a value."""
        # Rounding must not lead out of the range.
        return min(max(self.at(float(generator.random())), self.low), self.high)


class Uniform(_Range):
    """Any real number from `low` to `high`, all equally likely."""

    kind: Literal["uniform"] = "uniform"

    def at(self, part: float) -> float:
        """Return the value below which a part of all draws lie."""
        return self.low + part * (self.high - self.low)


class LogUniform(_Range):
    """A positive real number from `low` to `high`; its logarithm is uniform.

    For scales: from 1 to 4, half of the draws lie below 2.
    """

    kind: Literal["log_uniform"] = "log_uniform"

    @model_validator(mode="after")
    def _positive(self) -> Self:
        if not self.low > 0.0:
            raise ValueError(f"vary '{self.path}': low = {self.low:g} must be positive")
        return self

    def at(self, part: float) -> float:
        """Return the value below which a part of all draws lie."""
        # Not the logarithm of the ratio, which may overflow.
        return self.low * math.exp(part * (math.log(self.high) - math.log(self.low)))


class Integers(_Law):
    """A whole number from `low` to `high`, both included, all equally likely."""

    kind: Literal["integers"] = "integers"
    low: _Whole
    """Least value."""
    high: _Whole
    """Largest value."""

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if not self.low < self.high:
            raise ValueError(
                f"vary '{self.path}': low = {self.low} must be less than high = {self.high}"
            )
        return self

    @property
    def probes(self) -> tuple[int, ...]:
        """Both ends."""
        return self.low, self.high

    def draw(self, generator: "Generator") -> int:
        """Return a value."""
        return int(generator.integers(self.low, self.high, endpoint=True))


class Choice(_Law):
    """One of some values: numbers, texts, or whole blocks as a scenario file writes them."""

    kind: Literal["choice"] = "choice"
    options: tuple[Any, ...] = Field(min_length=2)
    """The values, all equally likely: a value that stands twice is twice as likely."""

    @property
    def probes(self) -> tuple[Any, ...]:
        """All of them."""
        return self.options

    def draw(self, generator: "Generator") -> Any:
        """Return a value."""
        return self.options[int(generator.integers(len(self.options)))]

    def number(self, value: Any) -> int | float:
        """Return the value if all are numbers, else its place among them."""
        if all(isinstance(one, int | float) and not isinstance(one, bool) for one in self.options):
            return float(value)
        return self.options.index(value)


Variation = Annotated[Uniform | LogUniform | Integers | Choice, Field(discriminator="kind")]
"""A law for one field."""
