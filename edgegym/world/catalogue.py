"""Request types, cache profiles, and what follows from the two: hit depths, sizes, holdings."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from edgegym.world.block import Block, Count, PositiveShare, Quantity
from edgegym.world.forest import Forest


class RequestType(Block):
    """Requests that share a prefix path, lengths, a family and a target."""

    name: str = Field(min_length=1)
    """Unique among request types."""
    path: str | None = None
    """The deepest vertex whose prefix the prompt starts with; none if nothing is reusable."""
    input_tokens: Count
    """Prompt length."""
    output_tokens: Count = 1
    """Generated tokens."""
    family: str = Field(min_length=1)
    """The family for which demand is observed."""
    share: PositiveShare
    """Share of all requests; the shares add up to 1."""
    ttft_target_s: Quantity | None = None
    """Its own TTFT target; by default that of the objective."""
    requires: str | None = None
    """Tag that a node must offer to serve it (a model, adapter, tokenizer or privacy domain)."""
    xi_factor: Quantity = 1.0
    """Its radio latency relative to ``radio.xi``: a large prompt takes longer to send."""


class Profile(Block):
    """A set of vertices that a node can hold, closed under ancestors by construction."""

    name: str = Field(min_length=1)
    """Unique among profiles."""
    vertices: tuple[str, ...] = ()
    """Vertices; their ancestors are held too."""


MOST_HOLDINGS = 4096
"""Most sets of vertices that the nodes of one scenario can come to hold."""


@dataclass(frozen=True)
class Catalogue:
    """The sets that nodes can hold, and what each is worth to each request type.

    A *holding* is a set that a node may really hold: one of the S profiles, the intersection of
    two of them while a move is under way, or nothing. The first S holdings are the profiles, in
    order. Where content expires or nodes fail, holdings are also what is left of others then.
    """

    forest: Forest
    """The prefix forest."""
    request_types: tuple[RequestType, ...]
    """Q request types."""
    profiles: tuple[Profile, ...]
    """S profiles."""
    changes_in_place: bool = False
    """Whether nodes lose state other than by moves, so that a move may start from any holding."""

    @cached_property
    def profile_sets(self) -> tuple[frozenset[str], ...]:
        """The vertex set of each profile."""
        return tuple(self.forest.closure(profile.vertices) for profile in self.profiles)

    @cached_property
    def holdings(self) -> tuple[frozenset[str], ...]:
        """The profiles' vertex sets, then all others that a node can come to hold."""
        found = dict.fromkeys(self.profile_sets)
        found |= dict.fromkeys(a & b for a in self.profile_sets for b in self.profile_sets)
        found[frozenset()] = None
        later = [held for held in found if held not in set(self.profile_sets)]
        holdings = [*self.profile_sets, *later]
        return tuple(self._closed(holdings) if self.changes_in_place else holdings)

    def _closed(self, holdings: list[frozenset[str]]) -> list[frozenset[str]]:
        """Add what expiry and further moves leave of the holdings, until nothing is new."""
        seen = set(holdings)
        lost = [self.forest.subtree(name) for name in self.lifetime_vertices]
        for held in holdings:  # grows while it is walked
            left = [held - gone for gone in lost] + [held & kept for kept in self.profile_sets]
            for rest in left:
                if rest not in seen:
                    seen.add(rest)
                    holdings.append(rest)
            if len(holdings) > MOST_HOLDINGS:
                raise ValueError(
                    f"profiles: what failures and expiring vertices leave of {len(self.profiles)} "
                    f"profiles are more than {MOST_HOLDINGS} different sets of vertices; give "
                    "fewer profiles, fewer vertices with lifetime_s, or profiles that are nested"
                )
        return holdings

    @cached_property
    def holds_weights(self) -> NDArray[np.bool_]:
        """Whether each holding has the model that each request type needs, ``[H, Q]``."""
        models = frozenset(item.name for item in self.forest.vertices if item.weights)
        needed = [self.forest.path(item.path) & models for item in self.request_types]
        return np.array([[model <= held for model in needed] for held in self.holdings])

    @property
    def lifetime_vertices(self) -> tuple[str, ...]:
        """Names of the L vertices that expire, in the forest's order."""
        return tuple(item.name for item in self.forest.vertices if item.lifetime_s is not None)

    @cached_property
    def holding_index(self) -> dict[frozenset[str], int]:
        """Index of each vertex set among the holdings; the first of equal ones."""
        index: dict[frozenset[str], int] = {}
        for position, held in enumerate(self.holdings):
            index.setdefault(held, position)
        return index

    @cached_property
    def meet(self) -> NDArray[np.int64]:
        """Index of the holding left when a node goes from one profile to another, ``[S, S]``."""
        index = self.holding_index
        table = np.array(
            [[index[a & b] for b in self.profile_sets] for a in self.profile_sets], dtype=np.int64
        )
        # Two profiles may be the same set; staying put must name the profile itself.
        np.fill_diagonal(table, np.arange(len(self.profiles)))
        return table

    @cached_property
    def move_bytes(self) -> NDArray[np.int64]:
        """Bytes to transfer to go from one profile to another, ``[S, S]`` (from, to)."""
        return np.array(
            [
                [self.forest.total_bytes(b - a) for b in self.profile_sets]
                for a in self.profile_sets
            ],
            dtype=np.int64,
        )

    @cached_property
    def holding_bytes(self) -> NDArray[np.int64]:
        """Bytes of each holding, ``[H]`` (eq. 4)."""
        return np.array([self.forest.total_bytes(held) for held in self.holdings], dtype=np.int64)

    @cached_property
    def hit_tokens(self) -> NDArray[np.float64]:
        """Cached prefix of each request type on each holding, tokens ``[H, Q]`` (eq. 3).

        At most the input length minus one: the last token must be computed to emit another.
        """
        paths = [self.forest.path(item.path) for item in self.request_types]
        limits = [item.input_tokens - 1 for item in self.request_types]
        return np.array(
            [
                [
                    min(self.forest.hit_depth(held, path), limit)
                    for path, limit in zip(paths, limits, strict=True)
                ]
                for held in self.holdings
            ],
            dtype=np.float64,
        )


def family_names(request_types: Sequence[RequestType]) -> tuple[str, ...]:
    """Return the families in order of first appearance."""
    return tuple(dict.fromkeys(item.family for item in request_types))
