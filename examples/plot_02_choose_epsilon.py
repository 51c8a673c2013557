"""
Choosing ε
==========

A utility wants to publish the yearly electricity use of 12,000 households, with noise. Which ε?
More of it means less noise and less privacy. Bounds and the number of rows give the errors
of each ε **before any label is read**, at no cost.
"""

import matplotlib.pyplot as plt
import numpy as np

import labeldp as ldp

plt.style.use("labeldp.plots")

# %%
# Errors of each ε
# ----------------
# The meters of these flats cannot count beyond 15,000 kWh a year: these are the bounds. For
# neighbourhoods of a hundred households an error of about 700 kWh would do.

plan = ldp.preview(rows=12_000, bounds=(0, 15_000), epsilon=[0.3, 1.0, 3.0])
plan

# %%
# A public prior
# --------------
# National statistics have the distribution of electricity use. With it as the prior, the mechanism
# adds less noise where most labels are. It is public, so it costs nothing.

statistics = ldp.Histogram([0, 1_500, 2_500, 4_000, 6_000, 15_000], [18, 27, 33, 17, 5])
informed = ldp.preview(rows=12_000, bounds=(0, 15_000), epsilon=[0.3, 1.0, 3.0], prior=statistics)
for before, after in zip(plan.budgets, informed.budgets, strict=True):
    print(f"ε = {before.epsilon:<4g} ±{before.hundred:,.0f}, with statistics ±{after.hundred:,.0f}")

# %%
# The picture
# -----------
# Above, errors fall as ε grows; where the line for 100 households meets the wanted ±700 kWh is the
# ε to ask for. Rings are with the public prior. Below is the privacy cost: whoever sees a private
# label may raise their odds on any guess about that household by the factor e^ε, at most. At ε =
# 0.1 that is a tenth more, next to nothing; at 3 it is twentyfold. The choice lies between
# the two.

curve = ldp.preview(rows=12_000, bounds=(0, 15_000), epsilon=np.geomspace(0.05, 20, 40)).budgets
budgets = [point.epsilon for point in curve]
enough = next(point.epsilon for point in curve if point.hundred <= 700)
figure, (errors, odds) = plt.subplots(2, 1, figsize=(7.2, 6), sharex=True, height_ratios=[2, 1])
lines = [
    ("label", "one household", "-"),
    ("hundred", "mean of 100", "--"),
    ("mean", "mean of all", ":"),
]
ring = {"marker": "o", "linestyle": "", "markerfacecolor": "white", "markersize": 7}
for number, (name, words, dash) in enumerate(lines):
    values = [getattr(point, name) for point in curve]
    errors.plot(budgets, values, dash, color=f"C{number}", label=words)
    values = [getattr(point, name) for point in informed.budgets]
    errors.plot([0.3, 1, 3], values, color=f"C{number}", **ring)
errors.plot([], [], color="0.4", label="with public statistics", **ring)
errors.axhline(700, color="0.45", linewidth=1)
errors.text(0.053, 450, "wanted: ±700 kWh", va="center", fontsize=9.5)
errors.set(title="What ε buys", ylabel="typical error, kWh a year", yscale="log", ylim=(15, 7e5))
errors.set_yticks([100, 1_000, 10_000, 100_000], ["100", "1,000", "10,000", "100,000"])
errors.legend(loc="upper right")

odds.plot(budgets, np.exp(budgets), color="C3")
odds.set(title="What it costs", ylabel="odds rise by at most", yscale="log", ylim=(0.9, 200))
odds.set_yticks([1, 10, 100], ["×1", "×10", "×100"])
for axes in (errors, odds):
    axes.axvline(enough, color="0.45", linewidth=1)
    axes.minorticks_off()
price = f"ε = {enough:.2g}: odds ×{np.exp(enough):.2g}"
odds.annotate(price, (enough, 60), (-6, 0), textcoords="offset points", ha="right")
odds.set(xlabel="ε", xscale="log", xlim=(0.05, 20))
odds.set_xticks([0.1, 0.3, 1, 3, 10], ["0.1", "0.3", "1", "3", "10"])
odds.minorticks_off()
plt.show()
