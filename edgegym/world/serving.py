"""How a node serves: the law of service times, and what it keeps in memory."""

from typing import Annotated, Literal

from pydantic import Field

from edgegym.world.block import Block, Count, Quantity


class ExponentialService(Block):
    """Occupancy times an exponential mark: the M/M/c of the theory."""

    kind: Literal["exponential"] = "exponential"


class DeterministicService(Block):
    """Occupancy as computed."""

    kind: Literal["deterministic"] = "deterministic"


class LognormalService(Block):
    """Prefill as computed, decode times a lognormal mark of mean 1."""

    kind: Literal["lognormal"] = "lognormal"
    sigma: Annotated[Quantity, Field(le=10)] = 0.5
    """Standard deviation of the logarithm of the mark."""


class TokensService(Block):
    """Prefill at once, then one token at a time at the pace of the batch that the request finds."""

    kind: Literal["tokens"] = "tokens"
    output: Literal["fixed", "geometric"] = "fixed"
    """Law of the output length around the type's mean."""


class EngineService(Block):
    """One prefill server for each GPU, and decoding that all running sequences share."""

    kind: Literal["engine"] = "engine"
    schedule: Literal["fifo", "chunked"] = "fifo"
    """Prompts one by one while decoding pauses, or in chunks that share each step with decoding."""
    step_tokens: Count = 512
    """Tokens of a step with chunks: one for each decoding sequence, the rest of a prompt."""
    output: Literal["fixed", "geometric"] = "fixed"
    """Law of the output length around the type's mean."""


Service = Annotated[
    ExponentialService | DeterministicService | LognormalService | TokensService | EngineService,
    Field(discriminator="kind"),
]


class ProfileCache(Block):
    """A node holds the vertices of its profile, and moves change it."""

    kind: Literal["profiles"] = "profiles"


class LruCache(Block):
    """A node holds what it computed last, in a radix tree within a byte budget.

    As serving engines do it: nothing is moved, and what no longer fits is evicted leaf by leaf,
    least recently used first. Nodes start empty. Profiles say nothing about them: every node runs
    as many sequences as fit beside the budget, a node's profile is a name that never changes, and
    all moves are illegal.
    """

    kind: Literal["lru"] = "lru"
    budget_bytes: Count
    """Memory set apart for it on every node; the rest runs sequences."""


Cache = Annotated[ProfileCache | LruCache, Field(discriminator="kind")]
