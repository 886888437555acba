"""What a router can do with a request, and what each number that it observes means."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from edgegym.interface.actions import checked_action
from edgegym.interface.blocks import BlockLayout, Row, Scope, in_order, significant

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from edgegym.world.scenario import Scenario


@dataclass(frozen=True, kw_only=True)
class RoutingActions:
    """The numbering of routing actions: ``2 * candidate + fetch``, the origin, then reject.

    Attributes
    ----------
    num_candidates : int
        C.
    """

    num_candidates: int

    @property
    def size(self) -> int:
        """Number of actions, 2·C + 2."""
        return 2 * self.num_candidates + 2

    @property
    def origin(self) -> int:
        """The action that sends the request to the origin."""
        return 2 * self.num_candidates

    @property
    def reject(self) -> int:
        """The action that rejects the request: the last one, always legal."""
        return 2 * self.num_candidates + 1

    def encode(self, candidate: int, fetch: bool = False) -> int:
        """Return the action that sends the request to a candidate.

        Parameters
        ----------
        candidate : int
            Row of the observation.
        fetch : bool
            Whether the missing prefix is fetched, not computed.

        Raises
        ------
        ValueError
            If there is no such row.
        """
        if not 0 <= candidate < self.num_candidates:
            raise ValueError(
                f"candidate is {candidate}: it must lie in 0..{self.num_candidates - 1}"
            )
        return 2 * candidate + int(fetch)

    def check(self, action: Any) -> int:
        """Return the number of an action.

        Raises
        ------
        TypeError
            If it isn't one integer.
        ValueError
            If it lies outside 0..2·C + 1.
        """
        meaning = f"2 * candidate + fetch; {self.origin} is the origin, {self.reject} rejects"
        return checked_action(action, self.size, meaning)


@dataclass(frozen=True, kw_only=True)
class RoutingLayout(BlockLayout):
    """Names, places, units and normalisers of a routing observation.

    A flat observation is the candidate block, ``[C, K]`` row-major, the nearest candidate
    first, then the global block: the request, and the fleet. All values lie in [0, 1]. Rows beyond
    the nodes that may take the request are zero.

    Attributes
    ----------
    num_candidates : int
        C, rows of the candidate block.
    num_profiles, num_families : int
        S and F.
    features : tuple of Feature
        In order, those of candidates first.

    Notes
    -----
    Everything is what a router knows: waits and backlogs as they were reported last (with what the
    router has sent since, where it predicts), holdings as the catalogue shows them, the rate that
    the backhaul advertised. Only where ``fetch.controller`` is ``joint`` the router sees the flows
    on the link themselves. Times longer than a million times their scale are written as that.
    """

    num_candidates: int

    scope: ClassVar[Scope] = "candidate"
    count: ClassVar[str] = "num_candidates"

    @classmethod
    def from_scenario(
        cls, scenario: "Scenario", num_candidates: int, *, observe_clock: bool = False
    ) -> "RoutingLayout":
        """Derive the layout of a scenario's observations.

        Parameters
        ----------
        scenario : Scenario
            Gives the sizes and the normalisers.
        num_candidates : int
            C.
        observe_clock : bool
            Append ``clock`` (sine and cosine of the time of day) to the global block.

        Returns
        -------
        RoutingLayout
        """
        world = scenario.compile()
        second = significant(scenario.objective.ttft_target_s)
        token = significant(float(world.type_share @ world.input_tokens))
        rows: list[Row] = [
            ("present", 1, "1 if there is such a candidate", None),
            ("radio", 1, "s until the request lands", second),
            ("prefill", 1, "s of prefill with what it advertises to hold", second),
            ("hit", 1, "prompt tokens that it advertises to hold", token),
            ("wait", 1, "s that it advertises", second),
            ("backlog", 1, "requests per slot, as reported", 1.0),
            ("ttft", 1, "s to the first token, as the router predicts", second),
            ("fetchable", 1, "prompt tokens that a fetch would add", token),
            ("transfer", 1, "s that they would flow, as predicted", second),
            ("fetch_ttft", 1, "s to the first token with a fetch, as predicted", second),
        ]
        shared: list[Row] = [
            ("family", int(world.num_families), "one-hot", None),
            ("input_tokens", 1, "prompt tokens", token),
            ("prefix_tokens", 1, "prompt tokens in prefixes of the catalogue", token),
            ("target", 1, "s within which the first token is a hit", second),
            ("origin_up", 1, "1 if the origin can be reached", None),
            ("origin_ttft", 1, "s to the first token there, as the router predicts", second),
            ("load", 1, "requests per slot, whole fleet, as reported", 1.0),
            ("rejected", 1, "share of the requests decided in this episode", None),
            ("link_rate", 1, "rate advertised for one more fetch over that of an idle link", None),
        ]
        if observe_clock:
            shared.append(("clock", 2, "(1 + sine) / 2 and (1 + cosine) / 2", None))
        return cls(
            num_candidates=num_candidates,
            num_profiles=int(world.num_profiles),
            num_families=int(world.num_families),
            features=(*in_order("candidate", rows), *in_order("global", shared)),
        )

    @property
    def candidate_features(self) -> int:
        """K, columns of the candidate block."""
        return self.row_features

    def candidate_block(self, observation: "NDArray[Any]") -> "NDArray[Any]":
        """View the candidates ``[..., C, K]`` of flat observations ``[..., C·K + G]``."""
        return self.row_block(observation)
