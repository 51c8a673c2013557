"""
Several private columns
=======================

A table may have more than one private column. Here 30,000 households state their yearly use of
electricity, gas and water. All three belong to the same household, so they share its ε.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import labeldp as ldp

plt.style.use("labeldp.plots")

# %%
# A table with three labels
# -------------------------
# The size of a household is public here; its use is not. The table is synthetic.

rng = np.random.default_rng(10)
people = rng.choice([1, 2, 3, 4, 5], 30_000, p=[0.38, 0.32, 0.14, 0.11, 0.05])
habit = rng.lognormal(0, 0.3, people.size)  # who heats much also washes much
use = np.column_stack(
    [
        (900 + 750 * people) * habit * rng.lognormal(0, 0.15, people.size),
        (4_000 + 2_500 * np.sqrt(people)) * habit * rng.lognormal(0, 0.25, people.size),
        42 * people**0.9 * habit * rng.lognormal(0, 0.1, people.size),
    ]
)
columns = ["electricity, kWh", "gas, kWh", "water, m³"]
bounds = [(0, 15_000), (0, 40_000), (0, 600)]  # what the meters can count in a year: public

# %%
# One release of all of them
# --------------------------
# The three columns share ε, equally: a household is in all three. Each has its own bounds and its
# own mechanism, and none is a feature of another. Means of groups are asked for, so the labels
# are for statistics.

ledger = ldp.Ledger(limit=ldp.Budget(epsilon=3.0))
how = {"epsilon": 3.0, "bounds": bounds, "purpose": "statistics", "ledger": ledger}
release = ldp.privatize(pd.DataFrame(use, columns=columns), **how)
print(ledger.total)
for charge in ledger.charges:
    print(" ", charge)

# %%
# One column alone
# ----------------
# Whoever needs only one column should release only one, with all of ε. ``preview``
# states its noise, without another release; here for the mean of a hundred
# households.

for name, limits in zip(columns, bounds, strict=True):
    shared, alone = ldp.preview(rows=len(use), bounds=limits, epsilon=[1.0, 3.0]).budgets
    print(f"{name:17} ±{shared.hundred:,.0f} as one of three, ±{alone.hundred:,.0f} alone")

# %%
# The picture
# -----------
# The mean of each column by the size of the household: grey is true, and known here only because
# the table is synthetic; in colour are private means, with two standard errors. There are
# few households of five, so their ± is widest. Noise is drawn for each column on its own, so
# columns may also be added up or compared.

figure, panels = plt.subplots(1, 3, figsize=(9, 3.8))
sizes = np.arange(1, 6)
for number, (axes, name) in enumerate(zip(panels, columns, strict=True)):
    truth = [use[people == size, number].mean() for size in sizes]
    means = release.columns[name].means(by=people)
    private = [means[size].value for size in sizes]
    errors = [2 * means[size].standard_error for size in sizes]
    axes.plot(sizes, truth, "s-", color="0.55", markerfacecolor="white", label="true mean")
    look = {"fmt": "o", "color": f"C{number}", "capsize": 4}
    axes.errorbar(sizes, private, yerr=errors, label="private mean", **look)
    axes.set(title=f"{name} a year", xticks=sizes, ylim=(0, None))
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.legend(loc="lower right", fontsize=9)
panels[1].set_xlabel("people in the household")
panels[0].set_ylabel("mean use")
plt.show()
