"""One observation in the units that a controller reckons in."""

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from edgegym.interface.layout import ObservationLayout

# A price is bytes over the bucket's level, squashed: at most one half exactly if it can be paid.
_AFFORDABLE = 0.5


class FleetReader:
    """Reads observations of one layout; looks the columns up once.

    Parameters
    ----------
    layout : ObservationLayout
        Gives the columns.
    """

    def __init__(self, layout: "ObservationLayout") -> None:
        self.layout = layout
        self.num_nodes = layout.num_nodes
        self.num_profiles = layout.num_profiles
        self.node_features = layout.node_features
        self.size = layout.size
        self.no_op = layout.num_nodes * layout.num_profiles
        self.node_columns = {f.name: f.columns for f in layout.features if f.scope == "node"}

    def view(
        self,
        observation: "NDArray[np.float32]",
        action_mask: "NDArray[np.bool_] | None" = None,
    ) -> "FleetView":
        """Return what an observation says.

        Parameters
        ----------
        observation : ndarray, shape [N·K + G]
            One flat observation.
        action_mask : ndarray of bool, shape [N·S + 1], optional
            Which actions are legal. Without it legality follows from the observation.
        """
        return FleetView(self, observation, action_mask)


class FleetView:
    """What one observation says of the fleet, decoded when first asked for.

    Made by :meth:`FleetReader.view`.
    """

    def __init__(
        self,
        reader: FleetReader,
        observation: "NDArray[np.float32]",
        action_mask: "NDArray[np.bool_] | None",
    ) -> None:
        self._reader = reader
        self._observation = observation
        self._mask = action_mask

    @property
    def no_op(self) -> int:
        """The action that moves nothing, N·S."""
        return self._reader.no_op

    def action(self, node: int, profile: int) -> int:
        """Return the action that moves `node` to `profile`."""
        return int(node) * self._reader.num_profiles + int(profile)

    @cached_property
    def _nodes(self) -> "NDArray[np.float32]":
        reader = self._reader
        block = self._observation[: reader.num_nodes * reader.node_features]
        return block.reshape(reader.num_nodes, reader.node_features)

    def _node_column(self, name: str) -> "NDArray[np.float32]":
        return self._nodes[:, self._reader.node_columns[name]]

    @cached_property
    def up(self) -> "NDArray[np.bool_]":
        """Nodes that serve, ``[N]``; padding rows never do."""
        return self._node_column("up")[:, 0] > 0.5

    @cached_property
    def receiving(self) -> "NDArray[np.bool_]":
        """Nodes whose transfer is under way, ``[N]``."""
        return self._node_column("receiving")[:, 0] > 0.0

    @cached_property
    def profile(self) -> "NDArray[np.int64]":
        """Profile that each node holds or is receiving, ``[N]``; 0 for padding rows."""
        return self._node_column("profile").argmax(axis=1)

    @cached_property
    def profile_counts(self) -> "NDArray[np.int64]":
        """Up nodes with each profile, ``[S]``."""
        return np.bincount(self.profile[self.up], minlength=self._reader.num_profiles)

    @cached_property
    def legal(self) -> "NDArray[np.bool_]":
        """Legal moves, ``[N, S]``.

        From the mask if there is one, else from the observation: up nodes that receive nothing, to
        another profile whose price the bucket holds (a profile that does not fit has no price).
        """
        if self._mask is not None:
            return self._mask[:-1].reshape(self._reader.num_nodes, self._reader.num_profiles)
        movable = self.up & ~self.receiving
        other = self._node_column("profile") < 0.5
        return (self._node_column("price") <= _AFFORDABLE) & other & movable[:, None]

    def _decoded(self, name: str) -> "NDArray[np.float64]":
        return self._reader.layout.decode(self._observation, name)

    @cached_property
    def demand_per_s(self) -> "NDArray[np.float64]":
        """Requests/s of each family nearest to each node, ``[N, F]``."""
        return self._decoded("demand")

    @cached_property
    def near_demand_per_s(self) -> "NDArray[np.float64]":
        """Requests/s of each family per node around each node, ``[N, F]``."""
        return self._decoded("near_demand")

    @cached_property
    def near_capacity(self) -> "NDArray[np.float64]":
        """Slots per node around each node by the profile held, ``[N, S]``."""
        return self._decoded("near_capacity")

    @cached_property
    def relative_family_demand(self) -> "NDArray[np.float64]":
        """Requests/s of each family over the long-run requests/s of all, ``[F]``."""
        return self._decoded("family_demand")

    @cached_property
    def bucket_fill(self) -> float:
        """Fill of the token bucket as a part of its burst."""
        return float(self._decoded("bucket")[0])
