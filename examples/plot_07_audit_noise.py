"""
Auditing noise of others
========================

A function claims to add Laplace noise, for ε = 1. You cannot read its code. ``ldp.audit`` draws
from it and measures a **lower bound on ε**. It needs no real label.
"""

import matplotlib.pyplot as plt
import numpy as np

import labeldp as ldp

plt.style.use("labeldp.plots")

# %%
# Three suspects
# --------------
# All three claim ε = 1 for labels from 0 to 5. The second has a common mistake, a scale that is
# too small: it adds a quarter of the noise. The third has the right scale, in floating point as
# NumPy draws it.

rng = np.random.default_rng()


def quarter(y):
    """Add a quarter of the noise, on a grid of 1/1024."""
    return np.rint((y + rng.laplace(0, 5.0 / 4, y.size)) * 1024) / 1024


def plain(y):
    """Add Laplace noise as a textbook has it, in floating point."""
    return y + rng.laplace(0, 5.0, y.size)


suspects = {
    "a quarter of the noise": quarter,
    "right noise, plain floats": plain,
    "labeldp.Laplace": ldp.Laplace(bounds=(0, 5), epsilon=1.0),
}

# %%
# The audit
# ---------
# Outputs for the labels 0 and 5 are compared through several lenses: their size, their last bits,
# and more. Half of the samples look for events that distinguish the labels, the other half counts
# how often these happen. A claim that is true is refuted in one audit of a million, at most.

sizes = [300, 1_000, 3_000, 10_000, 30_000, 100_000]
audits = {
    name: [ldp.audit(suspect, labels=(0, 5), epsilon=1.0, samples=size) for size in sizes]
    for name, suspect in suspects.items()
}
for name, (*_, last) in audits.items():
    verdict = last.verdict
    by_size = max(event.epsilon for event in last.tested if event.lens == "size")
    print(f"{name:26} {verdict:22} ε ≥ {last.epsilon:.2f}, by size alone {by_size:.2f}")
print(f"At best, ε = {last.detectable:.2f} would have been detected four times out of five")

# %%
# The picture
# -----------
# A line that rises above the claim is a violation. A quarter of the noise is found with a few
# thousand samples, and its line approaches its true ε, 4. Plain floats look honest by
# their size; their last bits reveal them, and the more samples, the worse. The mechanism of this
# library comes close to its claim, and does not exceed it. An audit that
# detects nothing is no proof. ``ldp.Laplace`` has one besides: ``mechanism.verify()``.

figure, axes = plt.subplots()
axes.axhspan(1.0, 9.0, color="C1", alpha=0.08, linewidth=0)
for (name, results), look in zip(audits.items(), ["s--", "^:", "o-"], strict=True):
    axes.plot(sizes, [audit.epsilon for audit in results], look, label=name)
axes.axhline(1.0, color="0.45", linewidth=1)
axes.text(sizes[-1], 1.1, "claimed: ε = 1", ha="right")
axes.set(xlabel="samples of each label", ylabel="the true ε is at least", ylim=(-0.1, 8))
axes.set_xscale("log")
axes.set_xticks(sizes, [f"{size:,}" for size in sizes])
axes.minorticks_off()
axes.set_title("Above the claim: a violation, with confidence 0.999999")
axes.legend(loc="upper left")
plt.show()
