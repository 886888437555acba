"""The common base of every block of a scenario, and the numbers that stand in them."""

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field


class Block(BaseModel):
    """Frozen, finite, and closed: unknown keys are refused instead of ignored."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, use_attribute_docstrings=True
    )


def plain_number(value: Any) -> Any:
    """Refuse what pydantic would turn into a number although nobody means it as one."""
    if isinstance(value, bool | str):
        raise ValueError(
            f"must be a number, not {'a truth value' if value in (True, False) else 'text'}"
        )
    return value


def _real(value: float) -> float:
    if not 1e-12 <= value <= 1e18:
        raise ValueError("must lie between 1e-12 and 1e18")
    return value


_Number = BeforeValidator(plain_number)

Quantity = Annotated[float, Field(gt=0), _Number, AfterValidator(_real)]
"""A positive measure. In our units nothing real lies outside, and nothing inside overflows."""
Amount = Annotated[float, Field(ge=0, le=1e18), _Number]
"""A measure that may be zero."""
Duration = Annotated[float, Field(ge=1e-3, le=1e9), _Number]
"""Seconds between things that happen again and again: from a millisecond to thirty years."""
Count = Annotated[int, Field(gt=0, le=10**18), _Number]
"""A positive whole number that fits 64 bits."""
CountOrZero = Annotated[int, Field(ge=0, le=10**18), _Number]
"""A whole number that fits 64 bits."""
Share = Annotated[float, Field(ge=0, le=1), _Number]
"""A share of a whole."""
Clustering = Annotated[float, Field(ge=-1, le=1), _Number]
"""How much equal marks stand together: 1 all, 0 as at random, -1 never."""
PositiveShare = Annotated[float, Field(gt=0, le=1), _Number]
"""A share that is not empty."""
