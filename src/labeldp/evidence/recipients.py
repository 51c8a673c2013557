"""Learners that recipients train: on true labels, on labels with their own noise, on labels that know columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import Ridge
from sklearn.metrics import r2_score
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from labeldp._values import Array, Data
from labeldp.accounts.ledger import Ledger
from labeldp.evidence.survey import Survey, make_survey
from labeldp.learning.label_release import privatize
from labeldp.learning.released_labels import Release
from labeldp.mechanisms.histogram import new_figure

LEARNERS: dict[str, Any] = {
    "least squares": Ridge(),
    "boosted trees": HistGradientBoostingRegressor(random_state=0),
    "network": make_pipeline(
        StandardScaler(),
        MLPRegressor(hidden_layer_sizes=(32,), max_iter=500, early_stopping=True, random_state=0),
    ),
}
"""Learners that know nothing of noise, at their defaults but for the network's size."""

DOTS = 1_200
"""Households drawn in a picture: more would hide the lines."""


@dataclass(frozen=True, slots=True)
class Recipients:
    """Learners trained on several versions of the incomes of a survey.

    Attributes
    ----------
    survey : Survey
        The households that the learners saw.
    incomes : dict
        Each version of the incomes, by its title.
    models : dict
        The fitted learners of each version, by name.
    release : Release
        The incomes that know the public columns.
    """

    survey: Survey
    incomes: Mapping[str, Array]
    models: Mapping[str, Mapping[str, Any]]
    release: Release

    @classmethod
    def train(cls, survey: Survey, epsilon: float = 1.0) -> Recipients:
        """Release incomes in two ways, and train every learner on each and on the true ones.

        Parameters
        ----------
        survey : Survey
        epsilon : float
            Of each release.

        Returns
        -------
        Recipients
        """
        options: Data = {"epsilon": epsilon, "bounds": survey.bounds}
        randomised = privatize(survey.income, ledger=Ledger(), **options)
        release = privatize(survey.income, X=survey.features, ledger=Ledger(), **options)
        incomes = {
            "True incomes: stay with the owner": survey.income,
            f"ε = {epsilon:g}, each with noise of its own": randomised.labels,
            f"ε = {epsilon:g}, knowing the public columns": release.labels,
        }
        models = {title: _train_learners(survey.features, labels) for title, labels in incomes.items()}
        return cls(survey, incomes, models, release)

    def scores(self) -> dict[str, dict[str, float]]:
        """Return R² on true incomes of new households, by title and learner."""
        fresh = make_survey(len(self.survey.income), seed=1)
        return {
            title: {
                name: float(r2_score(fresh.income, model.predict(fresh.features)))
                for name, model in models.items()
            }
            for title, models in self.models.items()
        }

    def plot(self) -> Any:
        """Return a Matplotlib figure: incomes as dots, predictions by age of a typical household as lines."""
        figure = new_figure(figsize=(11, 4.2))
        ages = np.unique(self.survey.features[:, 0])
        households = np.tile(np.median(self.survey.features, axis=0), (ages.size, 1))
        households[:, 0] = ages
        figure.suptitle("One private column, three learners", x=0.01, ha="left", fontsize=14, weight="bold")
        panels = figure.subplots(1, len(self.models), sharey=True)
        for axes, (title, scores) in zip(panels, self.scores().items(), strict=True):
            dots = self.survey.features[:DOTS, 0], self.incomes[title][:DOTS] / 1000
            axes.scatter(*dots, s=3, color="#8792a0", alpha=0.5, linewidths=0, rasterized=True)
            for name, model in self.models[title].items():
                label = f"{name}: {scores[name]:.0%}"
                axes.plot(ages, model.predict(households) / 1000, linewidth=2, label=label)
            axes.set_title(title, loc="left", fontsize=11)
            axes.set(xlabel="age (public)", ylim=(-40, 190))
            axes.legend(
                frameon=False, loc="upper right", fontsize=9, title="of new incomes, explained", title_fontsize=9
            )
            axes.spines[["top", "right"]].set_visible(False)
        panels[0].set_ylabel("income (private), $1,000")
        return figure


def _train_learners(X: Array, labels: Array) -> dict[str, Any]:
    """Return learners fitted to labels of zero mean and unit variance."""
    return {
        name: TransformedTargetRegressor(clone(learner), transformer=StandardScaler()).fit(X, labels)
        for name, learner in LEARNERS.items()
    }
