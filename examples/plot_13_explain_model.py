"""
Explaining a private model
==========================

Which columns matter to a private model, and how do its predictions follow them? Features are
public and the model is private already: permutation
importance, partial dependence and curves of single rows cost no ε.

The table is a synthetic survey of incomes: six public features, one private label.
"""

import matplotlib.pyplot as plt
import pandas as pd
from sklearn.inspection import PartialDependenceDisplay

import labeldp as ldp
from labeldp.evidence.survey import make_survey

plt.style.use("labeldp.plots")

survey = make_survey(rows=8_000)
X = pd.DataFrame(survey.features, columns=survey.feature_names)
model = ldp.ModelReleaseRegressor(epsilon=1.0, bounds=survey.bounds).fit(X, survey.income)

# %%
# Which columns matter
# --------------------
# ``importances`` shuffles one column of public rows after the other, and returns the mean change of
# predictions, in the label's unit. No label is needed for it. (With true labels,
# scikit-learn's ``permutation_importance`` would publish something about them that no ε covers;
# with ``model.predict(X)`` in their place it is free, too.)

found = model.importances(X)
for name, change in found.items():
    print(f"{name:12} {change:9,.0f}")
print("spent:", model.ledger_.total)

# %%
# How predictions follow them
# ---------------------------
# Scikit-learn's own tools work as on any model. A thin line is one public row whose column is moved
# while its others stay (ICE); the dashed one is their mean, the partial dependence. Noise that the
# model learned is in the curves, too: a bump without a reason may be just that.

figure, (bars, *curves) = plt.subplots(1, 3, figsize=(10, 3.8))
bars.barh(list(found)[::-1], [change / 1000 for change in list(found.values())[::-1]])
bars.set_xlabel("change of a prediction, in thousands")
PartialDependenceDisplay.from_estimator(
    model,
    X.sample(200, random_state=0),
    list(found)[:2],
    kind="both",
    subsample=40,
    random_state=0,
    ax=curves,
)
figure.suptitle("What a private model learned, at no further cost")
plt.show()
