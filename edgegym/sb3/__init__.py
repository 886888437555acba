"""Stable-Baselines3: the node-scorer policy, models with manifests, fast vector environments.

Needs the extra: ``pip install "edgegym[sb3]"``.
"""

from importlib.util import find_spec

_MISSING = [
    name for name in ("sb3_contrib", "stable_baselines3", "torch") if find_spec(name) is None
]
if _MISSING:
    raise ModuleNotFoundError(
        f'edgegym.sb3 needs {", ".join(_MISSING)}: pip install "edgegym[sb3]"', name=_MISSING[0]
    )

from edgegym.sb3.manifest import Manifest, ModelError  # noqa: E402
from edgegym.sb3.models import load_model, save_model  # noqa: E402
from edgegym.sb3.scorer import NodeScorerPolicy, scorer_kwargs  # noqa: E402
from edgegym.sb3.vec_env import EdgeVecEnv  # noqa: E402

__all__ = [
    "EdgeVecEnv",
    "Manifest",
    "ModelError",
    "NodeScorerPolicy",
    "load_model",
    "save_model",
    "scorer_kwargs",
]
