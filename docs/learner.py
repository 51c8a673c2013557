"""Draws `_static/learner.png`: groups of rows before and after a model learnt which columns matter (how.md)."""

from fractions import Fraction
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from labeldp.accounts import Statistic
from labeldp.accounts.ledger import Ledger
from labeldp.exact.word_sources import resolve_source
from labeldp.learning.features import FeatureTable
from labeldp.learning.fit_plan import FitRequest
from labeldp.learning.label_queries import GroupSums
from labeldp.learning.sum_model import release_sums
from labeldp.release.label_access import LabelAccess, Measurement
from labeldp.release.queries import Query

ROWS, NAMES = 20_000, ("age", "hours", "height")


def main() -> None:
    """Release sums of one synthetic table, and draw the first and the last groups of its rows."""
    rng, groups = np.random.default_rng(0), []
    X = rng.uniform(-1, 1, (ROWS, 3))
    labels = np.clip(0.5 + 0.4 * X[:, 0] * X[:, 1] + 0.05 * rng.normal(size=ROWS), 0, 1)

    class Recorder(LabelAccess):
        """Labels that remember into which groups their rows were put."""

        def measure(self, query: Query, epsilon: Fraction) -> Measurement[Statistic]:
            """Return a query's sums with noise."""
            groups.extend([query.row_rules.group] if isinstance(query, GroupSums) else [])
            return super().measure(query, epsilon)

    access = Recorder(labels, resolve_source(None))
    plan = FitRequest(epsilon=0.2, bounds=(0, 1), labels=False).plan(ROWS)
    plan.pay(Ledger(), access)
    model = release_sums(FeatureTable.fit(X), access, plan, str)
    figure, axes = plt.subplots(1, 3, figsize=(9, 3.2), layout="constrained")
    titles = ("1. Sums of similar rows", "3. Sums along what was learnt")
    for axis, group, title in zip(axes[::2], (groups[0], groups[-1]), titles, strict=True):
        means = np.bincount(group, labels) / np.bincount(group)
        axis.scatter(*X[:2_500, :2].T, c=means[group[:2_500]], s=3, cmap="viridis", vmin=0.1, vmax=0.9)
        axis.set(title=title, xlabel=NAMES[0], ylabel=NAMES[1], xticks=[], yticks=[])
    axes[1].barh(NAMES[::-1], 1 / model.length_scales.values[::-1], color="#3b6fb6")
    axes[1].set(title="2. Which columns matter together", xlabel="1 / length")
    axes[1].spines[["top", "right"]].set_visible(False)
    figure.savefig(Path(__file__).parent / "_static" / "learner.png", dpi=90)


if __name__ == "__main__":
    main()
