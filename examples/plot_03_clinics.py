"""
Several clinics, one ledger
===========================

Three clinics release the LDL cholesterol of their patients for a study, with noise. The same
patient may have been to all three, so costs add up. One ledger with one
limit ensures that no patient's cost exceeds the study's promise: ε = 3.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import labeldp as ldp

plt.style.use("labeldp.plots")

# %%
# One file, one limit
# -------------------
# A ledger in a file can be shared by programs, and remembers after a crash. The limit is set once,
# when the file is created.

folder = tempfile.TemporaryDirectory()
ledger = ldp.Ledger.open(Path(folder.name, "ldl.db"), limit=ldp.Budget(epsilon=3.0))

# %%
# Three releases
# --------------
# The bounds are those of the laboratory's method, in mg/dL. The clinic in the North measures a
# patient up to twice: ``rows_per_person`` says so, and the ledger is charged for both rows. The
# values are synthetic.

BOUNDS = (0, 400)
rng = np.random.default_rng(4)
clinics = {  # name: (measured values, ε of a row, rows of a patient)
    "North": (np.clip(rng.normal(128, 34, 9_000), *BOUNDS), 0.5, 2),
    "Centre": (np.clip(rng.normal(117, 31, 6_000), *BOUNDS), 1.0, 1),
    "South": (np.clip(rng.normal(139, 38, 4_000), *BOUNDS), 0.8, 1),
}
means, errors = {}, {}
for name, (values, epsilon, rows) in clinics.items():
    release = ldp.privatize(
        values, epsilon=epsilon, bounds=BOUNDS, rows_per_person=rows, ledger=ledger
    )
    means[name] = release.labels.mean()
    errors[name] = release.labels.std() / np.sqrt(release.labels.size)
    print(f"{name:7} cost {release.cost}, left {ledger.remaining()}")

# %%
# The limit
# ---------
# South would like to release again, after a correction. The remaining budget is too small: the
# release is refused, and the ledger stays as it was.

try:
    ldp.privatize(clinics["South"][0], epsilon=0.8, bounds=BOUNDS, ledger=ledger)
except ldp.BudgetError as refusal:
    print(refusal)

# %%
# The picture
# -----------
# Above, a mean for each clinic, with its ± from the private values alone.
# Grey marks are true means, known here because the values are synthetic. Below, the cost of a
# patient of all three clinics, and the remaining budget. A clinic whose patients go
# nowhere else could keep a ledger, and a limit, of its own.

figure, (study, budget) = plt.subplots(2, 1, figsize=(7.2, 5), height_ratios=[2.4, 1])
spent = 0.0
for place, (name, (values, epsilon, rows)) in enumerate(clinics.items()):
    look, error, cost = {"color": f"C{place}"}, 2 * errors[name], epsilon * rows
    true = study.scatter(values.mean(), place, marker="s", s=90, color="white", edgecolor="0.45")
    private = study.errorbar(means[name], place, xerr=error, fmt="o", capsize=5, **look)
    budget.barh(0, cost, left=spent, edgecolor="white", linewidth=2, height=0.6, **look)
    budget.text(
        spent + cost / 2, 0, f"{name}\nε = {cost:g}", ha="center", va="center", color="white"
    )
    spent += cost
names = [f"{name}\n{len(values):,} rows" for name, (values, *_) in clinics.items()]
study.set_yticks(range(len(clinics)), names)
study.set(title="LDL cholesterol by clinic", xlabel="mean, mg/dL", ylim=(2.6, -0.6))
marks = {"true mean": true, "private mean ± 2 standard errors": private}
figure.legend(marks.values(), marks, loc="outside upper right", ncols=2)

left = ledger.remaining().epsilon
budget.barh(0, left, left=spent, color="0.87", edgecolor="0.45", hatch="//", height=0.6)
budget.set(title="The ledger: ε = 3 for every patient, no more", xlabel="ε", xlim=(0, 3), yticks=[])
budget.set_title(f"left: {left:g}", loc="right", fontsize=10.5)
budget.spines["left"].set_visible(False)
folder.cleanup()
plt.show()
