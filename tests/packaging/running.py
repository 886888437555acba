"""Running commands as a user does who has no clone."""

import os
import subprocess
from pathlib import Path

from edgegym.jit import cache_folder

ROOT = Path(__file__).parents[2]


def run(*command: str | Path, cwd: Path, **changes: str) -> subprocess.CompletedProcess[str]:
    """Run a command without the clone on its path; fail with what it said.

    Compiled kernels are shared with the clone's environment, whose sources are the same.
    """
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    environment |= {"EDGEGYM_CACHE_DIR": str(cache_folder().parent)} | changes
    finished = subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
    return finished
