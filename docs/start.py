"""Draw the pictures of README.md, docs/index.md and docs/start.md from real releases: ``python docs/start.py``.

Mean income by years of schooling, true and private; and two models of the census, one of them private, which the
gallery's example fits. Each in light and in dark colours.
"""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np

from labeldp import preview, private_ols, privatize
from labeldp.evidence.survey import make_survey

mpl.use("svg")

import matplotlib.pyplot as plt

FOLDER = Path(__file__).parent / "_static"
CENSUS = Path(__file__).parents[1] / "examples/plot_14_census.py"
COLOURS = {
    "light": ("#222832", "#1f5fa8", "#b3470e", "#1b7a3e"),
    "dark": ("#ced6dd", "#79b4f2", "#f0a36b", "#7fcf9a"),
}


def style(theme: str, size: int) -> dict[str, Any]:
    """Return the settings of Matplotlib for a theme, and for a size of letters."""
    parts = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")
    letters = {"svg.fonttype": "none", "svg.hashsalt": "labeldp", "font.family": "sans-serif", "font.size": size}
    return letters | dict.fromkeys(parts, COLOURS[theme][0])


def save(figure: Any, name: str, theme: str) -> None:
    """Write a picture: the light one on white, for README, the dark one on nothing."""
    for axes in figure.axes:
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(FOLDER / f"{name}-{theme}.svg", transparent=theme == "dark", metadata={"Date": None})
    plt.close(figure)


def draw_means(theme: str, years: np.ndarray, true: np.ndarray, private: np.ndarray, error: np.ndarray) -> None:
    """Draw true and private means."""
    _, blue, orange, _ = COLOURS[theme]
    with plt.rc_context(style(theme, 12)):
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
        axes.legend(frameon=False, loc="upper left")
        save(figure, "start", theme)


def draw_models(theme: str, census: dict[str, Any]) -> None:
    """Draw what both models of the census predict, with their errors on people who were kept back."""
    with plt.rc_context(style(theme, 13)):
        figure, panels = plt.subplots(1, 2, figsize=(8.4, 3.5), sharey=True, layout="constrained")
        titles = ("Without privacy", "Private, ε = 1")
        for axes, name, title in zip(panels, census["models"], titles, strict=True):
            shown = {schooling: line for (model, schooling), line in census["curves"].items() if model == name}
            for (schooling, line), colour in zip(shown.items(), COLOURS[theme][1:], strict=True):
                axes.plot(census["years"], line, color=colour, linewidth=2.5, label=f"{schooling} years of school")
            axes.set(xlabel="years of experience", ylim=(0, 1_500))
            axes.set_title(f"{title}\n", loc="left", fontweight="bold")
            axes.text(0, 1.04, f"typical error: \\${census['errors'][name]:.0f}", transform=axes.transAxes)
        panels[0].set_ylabel("predicted income, \\$ a week")
        panels[1].legend(frameon=False, loc="lower right", labelspacing=0.2)
        save(figure, "models", theme)


def draw_noise(theme: str) -> None:
    """Draw the noise of a mean against ε, as ``preview`` states it before a label is read."""
    previews = preview(rows=20_000, bounds=(0, 200_000), epsilon=np.geomspace(0.1, 8, 12).tolist()).budgets
    budgets, noise = [each.epsilon for each in previews], [each.mean for each in previews]
    with plt.rc_context(style(theme, 12)):
        figure, axes = plt.subplots(figsize=(4.2, 2.6), layout="constrained")
        axes.loglog(budgets, noise, color=COLOURS[theme][1], linewidth=2.5)
        axes.set(xlabel="ε: privacy budget", ylabel="noise of a mean, \\$")
        save(figure, "noise", theme)


def draw_coefficients(theme: str, table: Any) -> None:
    """Draw the coefficients of a regression table with their intervals."""
    with plt.rc_context(style(theme, 12) | {"axes.prop_cycle": plt.cycler(color=COLOURS[theme][1:])}):
        figure, axes = plt.subplots(figsize=(4.2, 2.6), layout="constrained")
        table.plot(axes)
        axes.set_xlabel("\\$ a week, with 95 % interval")
        save(figure, "regression", theme)


def main() -> None:
    """Release the incomes of a synthetic survey, fit the models of the census, and draw both for each theme."""
    survey = make_survey(20_000)
    release = privatize(survey.income, epsilon=1.0, bounds=survey.bounds, purpose="statistics")
    years = survey.features[:, survey.feature_names.index("schooling")]
    groups = [np.flatnonzero((years >= start) & (years < start + 2)) for start in range(8, 20, 2)]
    middle = np.array([years[rows].mean() for rows in groups])
    true = np.array([survey.income[rows].mean() for rows in groups])
    private = np.array([release.labels[rows].mean() for rows in groups])
    error = np.array([2 * release.labels[rows].std() / np.sqrt(rows.size) for rows in groups])
    with plt.rc_context():  # the example chooses a style
        census = runpy.run_path(str(CENSUS))
    people = census["X"].rename(columns={"educ": "a year of school"})
    people["ten years of work"] = people.pop("exper") / 10
    table = private_ols(people, census["y"], epsilon=1.0, bounds=census["bounds"])
    for theme in COLOURS:
        draw_means(theme, middle, true, private, error)
        draw_models(theme, census)
        draw_noise(theme)
        draw_coefficients(theme, table)


if __name__ == "__main__":
    main()
