"""What an agent sees and does: observations, masks and rewards, without Gymnasium."""

from edgegym.interface.layout import Feature, ObservationLayout

__all__ = ["Feature", "ObservationLayout"]
