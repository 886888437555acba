"""The command line ``edgegym``: one file per command."""

from edgegym.cli.main import main

__all__ = ["main"]
