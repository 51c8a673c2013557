"""
A mechanism of your own
=======================

Patients rate their pain from 0 to 10. Laplace noise makes ratings of −3.7 of them, which no form
accepts. We write a mechanism whose outputs are ratings again: those near the true one are likelier
than the others, by e^ε. It is proven when it is built, and then works wherever mechanisms are
named.
"""

from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np

import labeldp as ldp
from labeldp import mechanisms
from labeldp.evidence import check_mechanism

plt.style.use("labeldp.plots")

# %%
# Which counts?
# -------------
# A mechanism is a table: for each label and output, the number of the 2⁶⁴ random words, rounded
# towards privacy. Everything else follows from them: sampling, proof, moments, cards.


@mechanisms.register("plateau")
@dataclass(frozen=True, slots=True, kw_only=True)
class Plateau(mechanisms.Mechanism):
    """Answer with one of eleven values: three near the label are likelier, by e^ε."""

    unbiased = False
    bounds: tuple[float, float]
    epsilon: float
    cut: bool = False  # whether the window is cut at both ends, or moved inwards
    channel: mechanisms.TableChannel = mechanisms.channel_field()

    def _build(self):
        low, high = self.bounds  # as floats, whatever was passed
        promise = mechanisms.Promise.of(self.epsilon)
        words = mechanisms.WORDS  # 2⁶⁴
        odds = mechanisms.exp_lower(promise.epsilon)  # just below e^ε
        counts = []
        for label in range(11):
            middle = label if self.cut else min(max(label, 1), 9)
            near = [abs(output - middle) <= 1 for output in range(11)]
            likely, others = near.count(True), near.count(False)
            for_other = -(-words // (likely * odds + others))  # rounded up: towards privacy
            for_likely, rest = divmod(words - others * for_other, likely)
            row = [for_likely if is_near else for_other for is_near in near]
            row[near.index(False)] += rest  # what is left over, two words at most
            counts.append(row)
        values = np.linspace(low, high, 11)
        return mechanisms.TableChannel.from_counts(low, high, values, counts, promise)


# %%
# The proof refuses, then accepts
# -------------------------------
# At the ends of the scale it is tempting to cut the window, for 0 has only one neighbour. Then 0
# has two likely outputs where others have three, and each is too likely. The proof compares all
# pairs of counts, and refuses.

try:
    Plateau(bounds=(0, 10), epsilon=2.0, cut=True)
except ldp.errors.PrivacyProofError as refusal:
    print(refusal)

plateau = Plateau(bounds=(0, 10), epsilon=2.0)
print(f"proven: ε ≤ {plateau.verify().epsilon}")
print("checks passed:", ", ".join(check_mechanism(plateau, samples=20_000)))

# %%
# By its name
# -----------
# ``privatize`` now knows the name; so do cards and ``labeldp compare``. A window at the end of the
# scale pulls ratings inwards, so this mechanism has no unbiased labels to train on: it is for
# values as drawn.

ratings = np.random.default_rng(6).binomial(10, 0.35, 5_000)
release = ldp.privatize(ratings, epsilon=2.0, bounds=(0, 10), mechanism="plateau", purpose="values")
print("released:", release.values[:10], release.cost)

# %%
# The picture
# -----------
# Outputs of three ratings. Every bar is possible under every rating, and none is more than e²
# = 7.4 times as high for one as for another: that is ε = 2. Laplace noise for the same ε (the
# line) spreads far beyond the scale.

laplace = ldp.Laplace(bounds=(0, 10), epsilon=2.0)
edges = np.arange(-12.5, 23)
figure, panels = plt.subplots(3, 1, figsize=(7.2, 5.4), sharex=True, sharey=True)
for axes, rating in zip(panels, (0, 4, 9), strict=True):
    chances = 100 * np.diff(plateau.channel.cumulative(rating, np.arange(-0.5, 11)))
    axes.bar(np.arange(11), chances, width=0.8, color="C0", alpha=0.75, label="Plateau")
    chances = 100 * np.diff(laplace.channel.cumulative(rating, edges))
    axes.stairs(chances, edges, color="C1", linewidth=2, label="Laplace, same ε")
    axes.plot(rating, -3, "^", color="0.2", markersize=8, clip_on=False, label="true rating")
    axes.set_title(f"The rating {rating}", fontsize=10.5)
    axes.set_ylim(0, 30)
panels[0].legend(loc="upper right")
panels[1].set_ylabel("probability, %")
panels[2].set(xlabel="released rating", xlim=(-10, 20), xticks=range(-10, 21, 5))
plt.show()
