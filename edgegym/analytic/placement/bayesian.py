"""Bayesian optimisation of the mix, by Optuna's tree-structured Parzen estimator."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from edgegym.analytic.placement.search import Search
from edgegym.world.network import checked_whole

_MOST = 10**9
_MOST_SEED = 2**32 - 1
# Worse than any score: mixes for which no equilibrium was found.
_NO_SCORE = -10.0


@dataclass(frozen=True)
class Bayesian:
    """Model the coverage from the mixes solved so far, and solve where it promises most.

    It proposes points of the unit cube, one number per profile; the mix is the nearest allowed one.
    Needs the optional package Optuna.

    Parameters
    ----------
    trials : int
        Mixes to solve.
    startup : int
        How many of them are random, before the model counts.
    seed : int
        From 0 to 2**32 - 1.

    Raises
    ------
    ValueError
        If a setting breaks its rule.
    ModuleNotFoundError
        From the search, if Optuna is not installed.
    """

    trials: int = 150
    startup: int = 20
    seed: int = 0

    def __post_init__(self) -> None:
        changes = {
            "trials": checked_whole("trials", self.trials, 1, _MOST),
            "startup": checked_whole("startup", self.startup, 1, _MOST),
            "seed": checked_whole("seed", self.seed, 0, _MOST_SEED),
        }
        for name, value in changes.items():
            object.__setattr__(self, name, value)

    def search(self, search: Search) -> bool:
        """Solve the trials; it has no end of its own, so the answer is False."""
        study = self._study()
        names = [f"share_{s}" for s in range(search.size)]
        study.enqueue_trial(dict(zip(names, search.start.tolist(), strict=True)))
        search.total = self.trials
        wait = search.wait
        for _ in range(self.trials):
            trial = study.ask()
            point = np.array([trial.suggest_float(name, 0.0, 1.0) for name in names])
            score, wait = search.assess(search.constraints.project(point), wait)
            study.tell(trial, score if np.isfinite(score) else _NO_SCORE)
        return False

    def _study(self) -> Any:
        """Return a new study that writes nothing."""
        try:
            import optuna
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(
                'method "bayesian" needs Optuna: pip install "edgegym[tune]"', name="optuna"
            ) from error
        verbosity = optuna.logging.get_verbosity()
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        try:
            with warnings.catch_warnings():
                # `multivariate` is marked experimental; the shares of a mix depend on each other.
                warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
                sampler = optuna.samplers.TPESampler(
                    n_startup_trials=self.startup, multivariate=True, seed=self.seed
                )
            return optuna.create_study(direction="maximize", sampler=sampler)
        finally:
            optuna.logging.set_verbosity(verbosity)
