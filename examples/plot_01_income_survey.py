"""
An income survey
================

A survey asked 20,000 households for their yearly income. Age, schooling and region may be known;
the income may not. We release the incomes with ε = 1, and compare private with true means.

The survey is synthetic. So the picture can show true incomes beside private ones: an owner of real
data would keep the left panel, and the grey marks of the right one, to themselves.
"""

from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np

import labeldp as ldp
from labeldp.evidence.survey import make_survey

plt.style.use("labeldp.plots")

# %%
# One call
# --------
# The questionnaire offers "0 to 200,000 or more", so the bounds are public. They never come from
# the answers: the largest answer is a true income.

survey = make_survey(rows=20_000)
release = ldp.privatize(survey.income, epsilon=1.0, bounds=survey.bounds)
release

# %%
# In a notebook a release shows itself; ``print(release.summary())`` gives the same as text. It
# states the charges, the clipping, and the noise of one label and of the mean.
#
# Means by age
# ------------
# But for clipping, ``release.labels`` is right on average, so the mean of a group is an estimate
# of its true mean. Its standard error follows from the private labels, at no further cost:
# their standard deviation over the root of their number.

age = survey.features[:, 0]
edges = np.array([18, 25, 35, 45, 55, 65, 75, 90])
group = np.digitize(age, edges) - 1
names = [f"{low}–{high - 1}" for low, high in pairwise(edges)]


def mean_by_age(labels):
    """Return the mean of each group of ages, in thousands of dollars, and its standard error."""
    parts = [labels[group == k] / 1000 for k in range(len(names))]
    return np.array([[part.mean(), part.std() / np.sqrt(part.size)] for part in parts]).T


truth, _ = mean_by_age(survey.income)
private, error = mean_by_age(release.labels)

# %%
# The picture
# -----------
# On the left, each dot is a household. Private labels are drawn from a list of values, which gives
# the rows of dots. Every income leads to each of them, at most e = 2.7 times as often as any other
# income does: that is ε = 1, and a private label says little about its household. On the right,
# thousands of such labels together show how incomes rise and fall with age. That is what a release
# is for: groups and models, never a single row.

figure, (single, means) = plt.subplots(1, 2, figsize=(9, 4.2), width_ratios=[1, 1.3])
truth_shown, private_shown = survey.income[:600] / 1000, release.labels[:600] / 1000
single.scatter(truth_shown, private_shown, s=8, alpha=0.5, color="C0")
single.axline((0, 0), slope=1, color="0.45", linestyle="--", linewidth=1, label="as it was")
single.set(title="600 households", xlabel="true income, $1,000 a year")
single.set_ylabel("private income, $1,000 a year")
single.legend(loc="best")

place = np.arange(len(names))
means.plot(place, truth, "s-", color="0.55", markerfacecolor="white", label="true mean")
words = "private mean ± 2 standard errors"
means.errorbar(place, private, yerr=2 * error, fmt="o", color="C0", capsize=4, label=words)
means.set(title="20,000 households, ε = 1", xlabel="age", ylim=(0, None))
means.set_ylabel("mean income, $1,000 a year")
means.set_xticks(place, names)
means.legend(loc="lower center")
plt.show()
