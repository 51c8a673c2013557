"""
The attack on floating point
============================

Noise is private on paper. On a computer it is a float, and floats have gaps: which numbers can be
reached depends on the label that noise was added to. Mironov showed in 2012 that the last bits of
such noise reveal labels. Here one can see it.
"""

import matplotlib.pyplot as plt
import numpy as np

import labeldp as ldp

plt.style.use("labeldp.plots")

# %%
# Two labels, noise for ε = 1
# ---------------------------
# The labels 0 and 5 are the bounds. NumPy's noise has just the scale that the textbook asks for;
# beside it stands the same distribution as this library draws it, on a public grid.

BOUNDS, SAMPLES = (0, 5), 40_000
rng = np.random.default_rng()
exact = ldp.Laplace(bounds=BOUNDS, epsilon=1.0)
outputs = {
    "NumPy's Laplace noise": [label + rng.laplace(0, 5.0, SAMPLES) for label in BOUNDS],
    "labeldp.Laplace": [exact.randomize(np.full(SAMPLES, label)) for label in BOUNDS],
}

# %%
# The last bit
# ------------
# Every float is an odd integer times a power of 2. That power, the place of its last bit, says how
# fine the float is. With the label 0 an output is the noise itself, and small noise can be very
# fine. With the label 5 a small output is 5 minus something of about that size, and such numbers
# have no bit beyond 2⁻⁵¹.


def last_bit(outputs):
    """Return k for outputs that are an odd integer times 2 to the power of k; 0 for 0."""
    fraction, exponent = np.frexp(outputs)
    integer = (np.abs(fraction) * 2.0**53).astype(np.int64) | 1 << 53
    return exponent - 53 + np.log2(integer & -integer).astype(int)


for name, (zero, five) in outputs.items():
    certain = np.mean(last_bit(zero) < last_bit(five).min())
    print(f"{name:22} {100 * certain:.0f} % of the outputs of 0 are finer than any of 5")

# %%
# The picture
# -----------
# ε = 1 promises that no output is more than e = 2.7 times as likely under one label as under the
# other. On the left this is broken: whatever lies in the shaded part was certainly the label 0,
# and that is about one of its outputs in five. On the right the outputs of both labels lie on the
# same grid, as coarse for one as for the other: a mechanism here is a list of outputs with integer
# counts, and which of them is drawn is decided in integers.

figure, panels = plt.subplots(1, 2, figsize=(9, 4.6), sharex=True, sharey=True)
for axes, (name, pair) in zip(panels, outputs.items(), strict=True):
    for label, values, marker in zip(BOUNDS, pair, "ox", strict=True):
        shown = values[np.abs(values - 2.5) < 9][:2500]
        height = last_bit(shown) + rng.uniform(-0.3, 0.3, shown.size)  # dots hide less
        axes.scatter(shown, height, s=7, linewidth=0.8, marker=marker, label=f"label {label}")
    axes.axhspan(-62, -51.5, color="C0", alpha=0.12, linewidth=0)
    axes.set(title=name, xlabel="output", xlim=(-6, 11), ylim=(-62, -35))
panels[0].text(10.5, -61, "no output of 5 is as fine as this", ha="right")
panels[0].set_ylabel("place of the last bit, as a power of 2")
panels[0].legend(loc="upper right", markerscale=2, framealpha=1, frameon=True)
plt.show()
