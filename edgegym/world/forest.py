"""The prefix forest: vertices that hold bytes, and ancestor-closed sets of them."""

from collections.abc import Iterable, Sequence
from functools import cached_property

from pydantic import Field, model_validator

from edgegym.world.block import Block, CountOrZero, Duration


class Vertex(Block):
    """One reusable piece of prefix state; its bytes are its own, beyond its parent's."""

    name: str = Field(min_length=1)
    """Unique among vertices."""
    parent: str | None = None
    """Name of the vertex it continues; none for the root of a tree."""
    depth_tokens: CountOrZero
    """Tokens from the start of the prompt to the end of this vertex."""
    bytes: CountOrZero | None = None
    """Size of its own state; by default KV bytes per token times the tokens beyond the parent,
    rounded up to whole blocks of ``hardware.block_tokens``."""
    lifetime_s: Duration | None = None
    """After this time its content changes: what nodes hold of it and below it is void, and must be
    fetched anew. By default it lasts."""
    weights: bool = False
    """A root whose bytes are a model's weights: a request whose path starts here can't be served
    where they are not held."""

    @model_validator(mode="after")
    def _weights_are_a_root_of_bytes(self) -> "Vertex":
        if self.weights and (self.parent is not None or self.depth_tokens or not self.bytes):
            raise ValueError(
                f"weights = {self.weights}: a model's weights are a root (parent = {self.parent}) "
                f"without tokens (depth_tokens = {self.depth_tokens}) that states its bytes "
                f"(bytes = {self.bytes})"
            )
        return self


def whole_blocks(tokens: int, block_tokens: int) -> int:
    """Return a number of tokens rounded up to whole blocks."""
    return -(-tokens // block_tokens) * block_tokens


class Forest:
    """Lookups over a tuple of vertices.

    Parameters
    ----------
    vertices : sequence of Vertex
        In any order.
    kv_bytes_per_token : int
        Gives the bytes of the vertices that do not state theirs.
    block_tokens : int
        Tokens of a block; a vertex that does not state its bytes begins a block of its own and
        fills whole ones.

    Raises
    ------
    ValueError
        If a name stands twice, a parent is unknown, a vertex is its own ancestor, or a vertex is
        shallower than its parent.
    """

    def __init__(
        self, vertices: Sequence[Vertex], kv_bytes_per_token: int, block_tokens: int = 1
    ) -> None:
        self.vertices = tuple(vertices)
        self._by_name = {vertex.name: vertex for vertex in self.vertices}
        self._kv_bytes_per_token = kv_bytes_per_token
        self._block_tokens = block_tokens
        self._check()

    def _check(self) -> None:
        if len(self._by_name) < len(self.vertices):
            names = [vertex.name for vertex in self.vertices]
            twice = next(name for name in names if names.count(name) > 1)
            raise ValueError(f"forest: vertex name '{twice}' stands twice; names are unique")
        for vertex in self.vertices:
            if vertex.parent is None:
                continue
            if vertex.parent not in self._by_name:
                raise ValueError(
                    f"forest.{vertex.name}.parent = '{vertex.parent}': no vertex has this name"
                )
            parent = self._by_name[vertex.parent]
            if vertex.depth_tokens < parent.depth_tokens:
                raise ValueError(
                    f"forest.{vertex.name}.depth_tokens = {vertex.depth_tokens}: must be at least "
                    f"its parent's depth, {parent.depth_tokens} ('{parent.name}')"
                )
        for vertex in self.vertices:
            seen = {vertex.name}
            here = vertex
            while here.parent is not None:
                if here.parent in seen:
                    raise ValueError(
                        f"forest.{vertex.name}.parent = '{vertex.parent}': the vertex is its own "
                        "ancestor; a forest has no cycles"
                    )
                seen.add(here.parent)
                here = self._by_name[here.parent]

    @cached_property
    def _ancestry(self) -> dict[str, frozenset[str]]:
        found: dict[str, frozenset[str]] = {}

        def resolve(name: str) -> frozenset[str]:
            stack = []
            here: str | None = name
            while here is not None and here not in found:
                stack.append(here)
                here = self._by_name[here].parent
            closed = found[here] if here is not None else frozenset()
            for step in reversed(stack):
                closed = closed | {step}
                found[step] = closed
            return closed

        for vertex in self.vertices:
            resolve(vertex.name)
        return found

    def __contains__(self, name: str) -> bool:
        return name in self._by_name

    def path(self, name: str | None) -> frozenset[str]:
        """Return a vertex and its ancestors; the empty set for ``None``."""
        return frozenset() if name is None else self._ancestry[name]

    def closure(self, names: Iterable[str]) -> frozenset[str]:
        """Return the smallest ancestor-closed set that contains the named vertices."""
        return frozenset().union(*(self._ancestry[name] for name in names))

    def vertex_bytes(self, name: str) -> int:
        """Return the bytes of one vertex's own state (theory: bytes belong to vertices, eq. 4)."""
        vertex = self._by_name[name]
        if vertex.bytes is not None:
            return vertex.bytes
        above = 0 if vertex.parent is None else self._by_name[vertex.parent].depth_tokens
        own = whole_blocks(vertex.depth_tokens - above, self._block_tokens)
        return self._kv_bytes_per_token * own

    def subtree(self, name: str) -> frozenset[str]:
        """Return a vertex and everything that continues it."""
        return frozenset(other for other, above in self._ancestry.items() if name in above)

    def total_bytes(self, names: Iterable[str]) -> int:
        """Return the bytes of a set of vertices, each counted once (eq. 4)."""
        return sum(self.vertex_bytes(name) for name in names)

    def hit_depth(self, held: frozenset[str], path: frozenset[str]) -> int:
        """Return the deepest token held along a path, 0 if nothing of it is held (eq. 3)."""
        return max((self._by_name[name].depth_tokens for name in held & path), default=0)
