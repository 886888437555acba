"""Training harness of edgegym, run from a clone: ``python -m agents --help``."""

import os

# Before PyTorch loads. Its threads would spin while they wait, in the way of the threads that step
# the environments and of whatever else runs: one gradient step then took a second instead of 30 ms.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
