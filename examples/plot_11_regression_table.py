"""
A regression table that may be published
========================================

What does a year of school earn? The survey is synthetic, and its pay column is private: the table
below may be published, with intervals that account for the noise.
"""

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt

import labeldp as ldp

rng = np.random.default_rng(0)
rows = 8000
schooling = np.clip(rng.normal(12, 3, rows).round(), 4, 20)
people = pd.DataFrame(
    {
        "schooling": schooling,
        "experience": np.clip(rng.normal(38 - schooling, 9), 0, 50).round(),
        "urban": rng.random(rows) < 0.55,
        "tenure": rng.exponential(6, rows).round(1),
    }
)
effects = {"schooling": 1.9, "experience": 0.35, "urban": 3.0, "tenure": 0.0}
pay = (people * pd.Series(effects)).sum(axis=1) + 6 + rng.normal(0, 9, rows)
pay = pay.rename("pay")

# %%
# Bounds come from public knowledge of hourly pay. Before anything is spent,
# `preview` states the width of intervals, for a column with a standard deviation of 1.

plan = ldp.preview(rows=rows, bounds=(0, 100), epsilon=[0.3, 1.0], columns=4)
[round(point.coefficient, 2) for point in plan.budgets]

# %%
# One call, in the layout that statsmodels users know. Tenure has no effect here: in 95 % of runs
# its p-value is above 0.05.

table = ldp.private_ols(people, pay, epsilon=1.0, bounds=(0, 100))
print(table.summary())

# %%
# Least squares on the true labels must not be published. Here all is synthetic, and it shows the
# cost of privacy.

columns = np.column_stack([np.ones(rows), people.astype(float)])
exact = np.linalg.lstsq(columns, np.clip(pay, 0, 100), rcond=None)[0]
pd.DataFrame({"private": table.params, "± private": 1.96 * table.bse, "least squares": exact})

# %%
# Each coefficient with both intervals: as published, and as wide as it would be without privacy.

figure, ax = plt.subplots(figsize=(7, 3), layout="constrained")
table.plot(ax)
plt.show()
