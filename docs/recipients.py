"""Draw the picture of the front page, one column and three learners: ``python docs/recipients.py``.

The incomes of a synthetic survey are released twice for the same ε, and learners that know nothing of noise are
trained on them and on the true ones. `labeldp demo` draws the same.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
from cycler import cycler

from labeldp.evidence import make_survey
from labeldp.evidence.recipients import Recipients

FOLDER = Path(__file__).parent / "_static"
COLOURS = {
    "light": ("#222832", ["#1f5fa8", "#b3470e", "#1b7a3e"]),
    "dark": ("#ced6dd", ["#79b4f2", "#f0a36b", "#7fcf9a"]),
}
INKED = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")
LETTERS = {"svg.fonttype": "none", "svg.hashsalt": "labeldp", "font.family": "sans-serif", "font.size": 11}


def main() -> None:
    """Release the incomes, train the learners, and draw what they predict in each theme."""
    recipients = Recipients.train(make_survey(6_000))
    for theme, (ink, lines) in COLOURS.items():
        with mpl.rc_context({**LETTERS, **dict.fromkeys(INKED, ink), "axes.prop_cycle": cycler(color=lines)}):
            path = FOLDER / f"recipients-{theme}.svg"
            recipients.plot().savefig(path, transparent=theme == "dark", metadata={"Date": None})
    print(recipients.scores())


if __name__ == "__main__":
    main()
