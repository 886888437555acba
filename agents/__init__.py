"""Training harness of edgegym, run from a clone: ``python -m agents --help``."""
