"""
A model with intervals
======================

Only a model is released, and no label, not even with noise. ``private_intervals`` computes
prediction intervals from held-out rows, with a proven coverage.

The table is a synthetic survey of incomes: six public features, one private label.
"""

import matplotlib.pyplot as plt
import numpy as np

import labeldp as ldp
from labeldp.evidence.survey import make_survey

plt.style.use("labeldp.plots")

# %%
# Three kinds of rows
# -------------------
# Most rows train the model. Some are held out to calibrate the intervals: errors on training rows
# are too small. The last ones are people who come later.

survey = make_survey(rows=8_000)
X, y, bounds = survey.features, survey.income, survey.bounds
train, calibrate, later = slice(0, 5_000), slice(5_000, 7_000), slice(7_000, 8_000)

# %%
# Fit, then calibrate
# -------------------
# Every row is in one of the two calls at most, so each person's label costs ε = 1 at most.

model = ldp.ModelReleaseRegressor(epsilon=1.0, bounds=bounds).fit(X[train], y[train])
sure = ldp.private_intervals(
    model, X[calibrate], y[calibrate], epsilon=1.0, bounds=bounds, coverage=0.9
)
print(sure)

# %%
# Model and intervals may be shared:

low, high = (sure.predict_interval(X[later]) / 1000).T
middle, truth = sure.predict(X[later]) / 1000, y[later] / 1000
inside = (low <= truth) & (truth <= high)
print(f"inside: {100 * inside.mean():.0f} %; at least 90 % on average were promised")

# %%
# The picture
# -----------
# Eighty later households, from the least to the largest prediction. A bar is an interval, cut
# where it would leave the bounds; a dot is the true income, and a cross one that lies outside, as
# about one in ten may. Bars are equally long for all: where incomes spread little, at the left,
# they are longer than they would have to be. The promise is about all households together. With
# ``by=``, it is about each public group of them.

shown = np.argsort(middle[:80])
place = np.arange(shown.size)
figure, axes = plt.subplots(figsize=(9, 4.4))
low, high, middle, truth, inside = (x[shown] for x in (low, high, middle, truth, inside))
axes.vlines(place, low, high, color="C0", alpha=0.35, linewidth=4, label="interval for 90 %")
axes.plot(place, middle, color="C0", linewidth=1.5, label="prediction")
axes.plot(place[inside], truth[inside], "o", color="0.2", markersize=4, label="true income, inside")
axes.plot(place[~inside], truth[~inside], "XC1", markersize=8, label="true income, outside")
axes.set(title="80 later households", xlabel="households, by prediction")
axes.set(ylabel="income, $1,000 a year", xticks=[], xlim=(-1, shown.size))
axes.legend(loc="upper left")
plt.show()
