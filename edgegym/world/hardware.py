"""A node's GPU: memory, prefill time and decode time."""

import math
from collections.abc import Sequence
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import (
    Field,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    field_validator,
    model_validator,
)

from edgegym.world.block import Amount, Block, Count, CountOrZero, Quantity
from edgegym.world.forest import whole_blocks
from edgegym.world.hardware_presets import hardware_figures

Attention = Literal["residual", "context"]


class Prefill(Block):
    """Time to compute the tokens of a prompt that are not cached (eq. 11)."""

    linear_s: Amount
    """Seconds per new token."""
    quadratic_s: Amount = 0.0
    """Seconds per squared token (attention)."""
    floor_s: Amount = 0.0
    """Least value of the linear part when there is at least one new token."""
    attention: Attention = "residual"
    """Do new tokens attend to each other only (residual) or to the cached ones too (context)?"""


def prefill_s(
    prefill: Prefill, input_tokens: ArrayLike, hit_tokens: ArrayLike
) -> NDArray[np.float64]:
    """Return the prefill time of prompts of which a prefix is cached (eq. 11).

    Parameters
    ----------
    prefill : Prefill
        The GPU's coefficients.
    input_tokens, hit_tokens : array_like
        Prompt length and cached prefix, tokens; they broadcast.

    Returns
    -------
    numpy.ndarray
        Seconds, float64, in the broadcast shape.
    """
    length = np.asarray(input_tokens, dtype=np.float64)
    hit = np.asarray(hit_tokens, dtype=np.float64)
    new = length - hit
    linear = np.where(new > 0, np.maximum(prefill.linear_s * new, prefill.floor_s), 0.0)
    pairs = new**2 if prefill.attention == "residual" else length**2 - hit**2
    return linear + prefill.quadratic_s * pairs


class OccupancyDecode(Block):
    """Decode occupancy stated directly, the same for every request type."""

    kind: Literal["occupancy"] = "occupancy"
    occupancy_s: Quantity
    """Seconds for which a sequence holds its slot after its prefill."""

    def seconds(self, output_tokens: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the decode occupancy of each request type, seconds ``[Q]``."""
        return np.full(output_tokens.shape, self.occupancy_s)


class TpotDecode(Block):
    """Decode occupancy from the time per output token at a stated batch size."""

    kind: Literal["tpot"] = "tpot"
    tpot_s: dict[PositiveInt, PositiveFloat] = Field(min_length=1)
    """Seconds per output token by batch size."""
    batch: Count = 16
    """Batch size at which the table is read (linear between rows, constant outside them)."""

    def tpot(self, sequences: ArrayLike) -> NDArray[np.float64]:
        """Return the seconds per output token while so many sequences decode, same shape."""
        batches = sorted(self.tpot_s)
        return np.interp(
            np.asarray(sequences, dtype=np.float64),
            batches,
            [self.tpot_s[batch] for batch in batches],
        )

    def seconds(self, output_tokens: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the decode occupancy of each request type, seconds ``[Q]``."""
        return output_tokens * self.tpot(self.batch)


class StepsDecode(Block):
    """Time of an engine's step by the sequences and the prompt tokens in it."""

    kind: Literal["steps"] = "steps"
    step_s: dict[NonNegativeInt, dict[NonNegativeInt, PositiveFloat]] = Field(min_length=1)
    """Seconds by decoding sequences, then by prompt tokens; linear between, constant outside."""
    batch: Count = 16
    """Sequences at which the other service laws read the table, without prompt tokens."""

    @field_validator("step_s")
    @classmethod
    def _more_tokens_take_longer(
        cls, step_s: dict[int, dict[int, float]]
    ) -> dict[int, dict[int, float]]:
        for sequences, row in step_s.items():
            if not row:
                raise ValueError(f"{sequences}: give the seconds of at least one chunk")
            times = [row[chunk] for chunk in sorted(row)]
            for chunk, before, after in zip(sorted(row)[1:], times, times[1:], strict=False):
                if after < before:
                    raise ValueError(
                        f"{sequences}.{chunk} = {after:g}: a step with more prompt tokens can't "
                        f"take less than {before:g} s, that of a smaller chunk"
                    )
        return step_s

    def step(self, sequences: ArrayLike, prompt_tokens: ArrayLike) -> NDArray[np.float64]:
        """Return the seconds of steps of the engine (bilinear in the table).

        Parameters
        ----------
        sequences : array_like
            Sequences that decode one token each.
        prompt_tokens : array_like
            Tokens of a prompt in the same step; it broadcasts with ``sequences``.

        Returns
        -------
        numpy.ndarray
            Seconds, float64, in the broadcast shape.
        """
        n, chunk = np.broadcast_arrays(
            np.asarray(sequences, dtype=np.float64), np.asarray(prompt_tokens, dtype=np.float64)
        )
        rows = np.array(sorted(self.step_s), dtype=np.float64)
        at_chunk = np.array(
            [
                np.interp(chunk, sorted(row), [row[size] for size in sorted(row)])
                for row in (self.step_s[int(key)] for key in rows)
            ]
        )
        above = np.clip(np.searchsorted(rows, n), 1, max(len(rows) - 1, 1))
        below, above = above - 1, np.minimum(above, len(rows) - 1)
        span = np.where(above > below, rows[above] - rows[below], 1.0)
        part = np.clip((n - rows[below]) / span, 0.0, 1.0)
        low = np.take_along_axis(at_chunk, below[None], axis=0)[0]
        high = np.take_along_axis(at_chunk, above[None], axis=0)[0]
        return low + part * (high - low)

    def tpot(self, sequences: ArrayLike) -> NDArray[np.float64]:
        """Return the seconds per output token while so many sequences decode, same shape."""
        return self.step(sequences, 0.0)

    def seconds(self, output_tokens: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the decode occupancy of each request type, seconds ``[Q]``."""
        return output_tokens * self.tpot(self.batch)


Decode = Annotated[OccupancyDecode | TpotDecode | StepsDecode, Field(discriminator="kind")]


class Hardware(Block):
    """What one node has: memory in integer bytes, prefill and decode speed."""

    preset: str | None = None
    """Name of a figure set (see ``edgegym.world.hardware_presets``); other keys override it."""
    memory_bytes: Count
    """Memory for weights, persistent state and running sequences together."""
    weights_bytes: CountOrZero = 0
    """Model weights, taken off the memory first."""
    kv_bytes_per_token: Count
    """KV cache of one token."""
    runtime_bytes_per_sequence: Count | None = None
    """Memory of one running sequence; by default the mean KV of input plus output, in whole
    blocks, plus ``overhead_bytes_per_sequence``."""
    block_tokens: Count = 1
    """Tokens of a KV block: memory is given out in whole ones."""
    overhead_bytes_per_sequence: CountOrZero = 0
    """Memory of a running sequence besides its KV (activations, bookkeeping)."""
    prefill: Prefill
    """Prefill time."""
    decode: Decode
    """Decode occupancy."""

    @model_validator(mode="before")
    @classmethod
    def _fill_in_preset(cls, document: Any) -> Any:
        if not isinstance(document, dict) or document.get("preset") is None:
            return document
        figures = hardware_figures(document["preset"]).as_hardware()
        return figures | document

    @model_validator(mode="after")
    def _weights_leave_room(self) -> "Hardware":
        if self.weights_bytes >= self.memory_bytes:
            raise ValueError(
                f"weights_bytes = {self.weights_bytes}: must be below memory_bytes = "
                f"{self.memory_bytes}, or nothing can run"
            )
        return self

    @model_validator(mode="after")
    def _overhead_of_a_computed_size(self) -> "Hardware":
        if self.overhead_bytes_per_sequence and self.runtime_bytes_per_sequence is not None:
            raise ValueError(
                f"overhead_bytes_per_sequence = {self.overhead_bytes_per_sequence}: is added to "
                "the KV of a sequence; runtime_bytes_per_sequence = "
                f"{self.runtime_bytes_per_sequence} already states all of its memory"
            )
        return self

    def sequence_bytes(self, shares: Sequence[float], tokens: Sequence[int]) -> int:
        """Return the mean memory of a running sequence, bytes (m_run).

        Parameters
        ----------
        shares, tokens : sequence
            Share of all requests, and input plus output tokens, of each request type.
        """
        if self.runtime_bytes_per_sequence is not None:
            return self.runtime_bytes_per_sequence
        mean_tokens = math.fsum(
            share * whole_blocks(number, self.block_tokens)
            for share, number in zip(shares, tokens, strict=True)
        )
        return math.ceil(self.kv_bytes_per_token * mean_tokens) + self.overhead_bytes_per_sequence

    @property
    def usable_bytes(self) -> int:
        """Memory left for persistent state and running sequences, bytes (M in theory)."""
        return self.memory_bytes - self.weights_bytes
