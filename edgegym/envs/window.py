"""A plain window for ``render_mode="human"``; nothing where there is no display."""

import os
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Window:
    """Shows one image after another in a Tk window, if a display and Tk are there."""

    def __init__(self, title: str) -> None:
        self._root: Any = None
        self._label: Any = None
        self._photo: Any = None
        self._toolkit: Any = None
        on_linux = sys.platform.startswith("linux")
        if on_linux and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
            return
        try:
            import tkinter as tk
        except ImportError:
            return
        try:
            root = tk.Tk()
        except tk.TclError:
            return
        root.title(title)
        root.protocol("WM_DELETE_WINDOW", self.close)
        self._toolkit = tk
        self._root = root
        self._label = tk.Label(root)
        self._label.pack()

    @property
    def is_open(self) -> bool:
        """Whether somebody can see the window."""
        return self._root is not None

    def show(self, image: "NDArray[np.uint8]") -> None:
        """Show an RGB image ``[height, width, 3]``."""
        if self._root is None:
            return
        height, width, _ = image.shape
        data = b"P6 %d %d 255 " % (width, height) + image.tobytes()
        # Tk keeps no reference of its own to the image.
        self._photo = self._toolkit.PhotoImage(master=self._root, data=data, format="PPM")
        self._label.configure(image=self._photo)
        self._root.update()

    def close(self) -> None:
        """Close the window; a no-op without one."""
        if self._root is not None:
            self._root.destroy()
            self._root = None
