"""Draw the picture of docs/how.md: one column, three learners, with and without: ``python docs/recipients.py``.

A synthetic column of labels is released three ways for the same ε: not at all private, each label by itself, and
with the public columns. Three learners that know nothing of noise are trained on each, and what they predict is
drawn along one public column, with their error on true labels.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import Ridge
from sklearn.neural_network import MLPRegressor
from sklearn.preprocessing import StandardScaler

from labeldp import privatize

mpl.use("svg")

import matplotlib.pyplot as plt

FOLDER = Path(__file__).parent / "_static"
ROWS, BOUNDS, EPSILON = 8_000, (0.0, 200.0), 1.0
COLOURS = {
    "light": ("#222832", "#1f5fa8", "#b3470e", "#1b7a3e", "#9aa4ae"),
    "dark": ("#ced6dd", "#79b4f2", "#f0a36b", "#7fcf9a", "#6b7580"),
}
LEARNERS: dict[str, Any] = {
    "least squares": Ridge(),
    "boosted trees": HistGradientBoostingRegressor(random_state=0),
    "network": MLPRegressor(hidden_layer_sizes=(64, 32), max_iter=200, early_stopping=True, random_state=0),
}


def make_rows(rng: np.random.Generator, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return four public columns and the expected label of each row."""
    X = rng.uniform(-1, 1, (rows, 4))
    return X, 60 + 25 * np.sin(3 * X[:, 0]) + 15 * X[:, 1] + 10 * X[:, 2] * X[:, 3]


def train(X: np.ndarray, labels: np.ndarray) -> dict[str, Callable[[np.ndarray], np.ndarray]]:
    """Return the predictions of three learners, trained on labels of zero mean and unit variance."""
    scaler = StandardScaler()
    return {
        name: TransformedTargetRegressor(clone(learner), transformer=scaler).fit(X, labels).predict
        for name, learner in LEARNERS.items()
    }


def main() -> None:
    """Release the labels, train the learners, and draw what they predict in each theme."""
    rng = np.random.default_rng(0)
    X, expected = make_rows(rng, ROWS)
    y = np.clip(expected + 12 * rng.normal(size=ROWS), *BOUNDS)
    released = {
        "True labels (stay with the owner)": y,
        "Private, ε = 1, each label by itself": privatize(y, epsilon=EPSILON, bounds=BOUNDS).labels,
        "Private, ε = 1, with the public columns": privatize(y.copy(), X=X, epsilon=EPSILON, bounds=BOUNDS).labels,
    }
    fresh, truth = make_rows(rng, 4_000)
    line = np.zeros((200, 4))
    line[:, 0] = np.linspace(-1, 1, 200)
    trained = {title: train(X, labels) for title, labels in released.items()}
    for theme, (ink, *colours, grey) in COLOURS.items():
        parts = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")
        letters = {"svg.fonttype": "none", "svg.hashsalt": "labeldp", "font.family": "sans-serif", "font.size": 11}
        with plt.rc_context(letters | dict.fromkeys(parts, ink)):
            figure, panels = plt.subplots(1, 3, figsize=(11, 3.6), sharey=True, layout="constrained")
            for axes, (title, labels) in zip(panels, released.items(), strict=True):
                shown = slice(None, 700)
                axes.scatter(X[shown, 0], labels[shown], s=3, color=grey, alpha=0.5, linewidths=0, rasterized=True)
                for (name, predict), colour in zip(trained[title].items(), colours, strict=True):
                    error = np.sqrt(np.mean((predict(fresh) - truth) ** 2))
                    axes.plot(line[:, 0], predict(line), color=colour, linewidth=2, label=f"{name}: ±{error:.1f}")
                axes.set_title(title, loc="left", fontsize=11)
                axes.set(xlabel="a public column", ylim=(-60, 220))
                axes.legend(frameon=False, loc="upper left", fontsize=9)
                axes.spines[["top", "right"]].set_visible(False)
            panels[0].set_ylabel("label, and what is predicted")
            path = FOLDER / f"recipients-{theme}.svg"
            figure.savefig(path, transparent=theme == "dark", metadata={"Date": None})
            plt.close(figure)
    for title, models in trained.items():
        print(
            title, {name: round(float(np.sqrt(np.mean((f(fresh) - truth) ** 2))), 2) for name, f in models.items()}
        )


if __name__ == "__main__":
    main()
