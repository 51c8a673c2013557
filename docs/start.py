"""Draw the pictures of docs/start.md from a real release: ``python docs/start.py``.

Mean income by years of schooling, true and private, in light and in dark colours.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np

from labeldp import privatize
from labeldp.evidence.survey import make_survey

mpl.use("svg")

import matplotlib.pyplot as plt

FOLDER = Path(__file__).parent / "_static"
COLOURS = {"light": ("#222832", "#1f5fa8", "#b3470e"), "dark": ("#ced6dd", "#79b4f2", "#f0a36b")}


def draw(theme: str, years: np.ndarray, true: np.ndarray, private: np.ndarray, error: np.ndarray) -> None:
    """Draw one picture in the colours of a theme: the light one on white, for README, the dark one on nothing."""
    text, blue, orange = COLOURS[theme]
    style = {"svg.fonttype": "none", "svg.hashsalt": "labeldp", "font.family": "sans-serif", "font.size": 12}
    style |= dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), text)
    with plt.rc_context(style):
        figure, axes = plt.subplots(figsize=(5.6, 3.6), layout="constrained")
        axes.plot(years, true / 1000, "o-", color=blue, label="true (stays with the owner)")
        axes.errorbar(
            years,
            private / 1000,
            error / 1000,
            fmt="s",
            color=orange,
            capsize=3,
            label="private, ε = 1 (can be shared), ± 2 standard errors",
        )
        axes.set(xlabel="years of schooling", ylabel="mean income, $1,000", ylim=(0, 80))
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, loc="upper left")
        figure.savefig(FOLDER / f"start-{theme}.svg", transparent=theme == "dark", metadata={"Date": None})
        plt.close(figure)


def main() -> None:
    """Release the incomes of a synthetic survey once, and draw them twice, as they come: nothing is chosen."""
    survey = make_survey(20_000)
    release = privatize(survey.income, epsilon=1.0, bounds=survey.bounds)
    years = survey.features[:, survey.feature_names.index("schooling")]
    groups = [np.flatnonzero((years >= start) & (years < start + 2)) for start in range(8, 20, 2)]
    middle = np.array([years[rows].mean() for rows in groups])
    true = np.array([survey.income[rows].mean() for rows in groups])
    private = np.array([release.debiased[rows].mean() for rows in groups])
    error = np.array([2 * release.debiased[rows].std() / np.sqrt(rows.size) for rows in groups])
    for theme in COLOURS:
        draw(theme, middle, true, private, error)


if __name__ == "__main__":
    main()
