"""The common base of every block of a scenario."""

from pydantic import BaseModel, ConfigDict


class Block(BaseModel):
    """Frozen, finite, and closed: unknown keys are refused instead of ignored."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, use_attribute_docstrings=True
    )
