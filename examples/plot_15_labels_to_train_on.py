"""
Hand over labels, and let others train
======================================

A utility knows the yearly energy use of 8,000 homes, and what is public about each: area, age of
the house, people, and distance from the coast. A university wants to try learners of its own. The
utility releases the column once, with ε = 1; the university trains what it likes. The table is
synthetic.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import RidgeCV
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import labeldp as ldp

plt.style.use("labeldp.plots")

rng = np.random.default_rng(15)
homes = pd.DataFrame(
    {
        "area": rng.gamma(8, 12, 10_000).round(),
        "age": rng.uniform(0, 100, 10_000).round(),
        "people": rng.choice([1, 2, 3, 4, 5], 10_000, p=[0.38, 0.32, 0.14, 0.11, 0.05]),
        "coast": rng.uniform(0, 300, 10_000).round(),
    }
)
heating = homes["area"] * (60 + 1.2 * homes["age"].clip(20, 70))
use = heating + 900 * homes["people"] + 8 * homes["coast"]
use = pd.Series(use * rng.lognormal(0, 0.15, len(homes)), name="kWh")
owner, fresh = slice(None, 8_000), slice(8_000, None)

# %%
# The owner
# ---------
# The bounds come from the meter, never from the labels. What the recipient has as features goes
# in as ``X``. The card says what the column is for, what it cost, and how wrong a model is.

release = ldp.privatize(use[owner], X=homes[owner], epsilon=1.0, bounds=(0, 60_000))
print(release.summary())

# %%
# The recipient
# -------------
# Public columns and ``release.labels``, nothing else. Reuse costs nothing more. An error that is
# measured against the released labels is far too small: the card has the right one.

learners = {
    "least squares": make_pipeline(StandardScaler(), RidgeCV()),
    "neighbours": make_pipeline(StandardScaler(), KNeighborsRegressor(15)),
    "boosted trees": HistGradientBoostingRegressor(max_iter=60, min_samples_leaf=50),
}
labels = {
    "true labels (stay with the owner)": use[owner],
    "private labels, ε = 1": release.labels,
}
errors = {}
for source, column in labels.items():
    for name, learner in learners.items():
        predicted = learner.fit(homes[owner], column).predict(homes[fresh])
        errors[source, name] = np.sqrt(np.mean((predicted - use[fresh]) ** 2))
for (source, name), error in errors.items():
    print(f"{name:14} {source:34} ±{error:,.0f} kWh")
print(f"{'the card':14} {'says of the model':34} {release.error.figures['rmse']}")

# %%
# The picture
# -----------
# The typical error of each learner on 2,000 fresh homes. The line is what the card states.

figure, axes = plt.subplots(figsize=(7, 3.6))
places = np.arange(len(learners))
for shift, source in zip((-0.2, 0.2), labels, strict=True):
    heights = [errors[source, name] for name in learners]
    axes.bar(places + shift, heights, width=0.38, label=source)
stated = release.error.figures["rmse"]
axes.axhline(stated.value, color="0.3", linestyle="--", label="error that the card states")
axes.set_xticks(places, list(learners))
axes.set(ylabel="typical error, kWh", xlabel="learner of the recipient", ylim=(0, None))
axes.legend(loc="lower right")
plt.show()
