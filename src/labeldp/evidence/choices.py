"""The figures of one ε as HTML, and the table from which a browser computes those of any other by itself.

The page's ``choices.js`` has the formulas of `preview` for labels spread evenly over the bounds. What no formula
gives is tabulated: the noise of one label in ``unit_noise.json``, and what models kept on the accuracy suite.
"""

from __future__ import annotations

import json
import math
from functools import cache
from html import escape
from pathlib import Path

from labeldp._values import EPSILON_RANGE, Data
from labeldp.accounts.budget import Budget, group_budget, rounded_up
from labeldp.accounts.numbers import EXAMPLE, NEARLY_CERTAIN, PEOPLE, RAISE, number, odds_figures, whose_labels
from labeldp.evidence.accuracy_suite import BEYOND, FEWEST, MARGIN, kept_curves
from labeldp.evidence.cautions import (
    CAUTIONS,
    LEAST_POWER,
    NOTES,
    NOTHING,
    ROOMY_POWER,
    SPREAD,
    cautions,
    cost_to_person,
)
from labeldp.evidence.previews import CURVE, GROUPS, HELD_OUT, NAMES, Preview

_STEPS = (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8)
_STOPS = {
    "epsilon": [*(float(f"{step * 10**k:.2g}") for k in (-2, -1, 0) for step in _STEPS), 10.0],
    "rows": [*(round(step * 10**k) for k in range(2, 7) for step in _STEPS), 10**7],
}
"""Where sliders stop; a field takes anything between."""

_LIMIT = (
    "LIMIT: this would cost ε = {epsilon}, and of ε = {limit} only ε = {left} is left: the ledger would refuse it."
)

_SPAN = "Labels lie from {low} to {high}."
_TOGETHER = "These odds are those after all of it, ε = {epsilon}: {parts}."
_PARTS = {
    "now": "ε = {amount} for this release",
    "score": "ε = {amount} for its score",
    "spent": "{amount} that the ledger has spent before",
}

_NOISE = Path(__file__).with_name("unit_noise.json")
"""ε times the noise of one private label in bounds (0, 1), at budgets evenly spaced in √ε;
``python -m benchmarks.unit_noise`` writes it."""

_KNOWN = {"knows": "all features, and even every other label,", "seen": "everything that is released"}


@cache
def choice_table(rows_per_person: int = 1) -> Data:
    """Return all that a browser needs to compute what `preview` says of any rows, bounds and ε: public numbers.

    Examples
    --------
    >>> table = choice_table()
    >>> table["range"], len(json.dumps(table)) < 20_000
    ([0.001, 20.0], True)
    """
    from labeldp.learning.score_sums import MOST_ROWS  # noqa: PLC0415 (scikit-learn takes a second)

    return {
        "range": list(EPSILON_RANGE),
        "noise": json.loads(_NOISE.read_text(encoding="utf-8")),
        "kept": [[places.round(6).tolist(), kept.round(6).tolist()] for places, kept in kept_curves()],
        "kept_rules": {"margin": MARGIN, "beyond": BEYOND, "fewest": FEWEST},
        "score_rules": {"held_out": HELD_OUT, "most_rows": MOST_ROWS},
        "caution_rules": {
            "certain": NEARLY_CERTAIN,
            "least_power": LEAST_POWER,
            "roomy_power": ROOMY_POWER,
            "spread": SPREAD,
        },
        "curve": list(CURVE),
        "groups": GROUPS,
        "names": NAMES,
        "stops": _STOPS,
        "rows_per_person": rows_per_person,
        "texts": {
            "odds": RAISE.format(times="{times}", whose=whose_labels(rows_per_person), **_KNOWN),
            "example": EXAMPLE.replace("{after}", "all that was released"),
            "people": PEOPLE,
            "span": _SPAN,
            "together": _TOGETHER,
            "parts": _PARTS,
            "cautions": {**CAUTIONS, "limit": _LIMIT},
            "notes": NOTES,
        },
    }


def choice_html(plan: Preview, *, spent: Budget = NOTHING, score: float = 0.0) -> str:
    """Return what one ε would give, with the table that lets a browser say it of any other.

    Parameters
    ----------
    plan : Preview
        Of one ε, without a prior.
    spent : Budget
        What a ledger has spent on the same labels before: whoever sees all releases has odds by their sum.
    score : float
        ε more for a score, which counts too.

    Returns
    -------
    str
        HTML without scripts or styles of its own; the page's ``choices.js`` and ``choices.css`` bring it to life.

    Examples
    --------
    >>> import labeldp as ldp
    >>> html = choice_html(ldp.preview(rows=20_000, bounds=(0, 200), epsilon=1.0))
    >>> '<tr data-figure="label"><th scope="row">one label</th><td>±197</td></tr>' in html
    True
    >>> again = choice_html(ldp.preview(rows=20_000, bounds=(0, 200), epsilon=1.0), spent=ldp.Budget(1.0))
    >>> "they can be 88 % certain at most" in again
    True
    """
    (point,) = plan.budgets
    content = choice_table(plan.rows_per_person)
    besides = spent + group_budget(Budget(score), plan.rows_per_person)
    figures = odds_figures(cost_to_person(plan, point, besides))
    told = f"{spent}{', and odds leave δ aside' if spent.exact_delta else ''}"
    together = _together(plan, figures["epsilon"], score, told if spent != NOTHING else "")
    odds, example, people = (escape(content["texts"][k].format(**figures)) for k in ("odds", "example", "people"))
    _, (_, *lines) = plan.table()
    shown = dict(zip([*plan.names, "score", "kept"], lines, strict=True))
    names = {**NAMES, "score": shown["score"][0], "kept": shown["kept"][0]}
    low, high = (repr(bound).removesuffix(".0") for bound in plan.bounds)
    spent_so_far = repr(spent.epsilon) if math.isfinite(spent.epsilon) else "Infinity"  # as a script reads it
    span = _SPAN.format(low=number(plan.bounds[0]), high=number(plan.bounds[1]))
    # A data block: no browser runs it, and a strict content security policy allows it.
    table = json.dumps(content, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    rows = "".join(
        f'<tr data-figure="{name}"{"" if name in shown else " hidden"}><th scope="row">{escape(what)}</th>'
        f"<td>{escape(shown[name][1] if name in shown else '')}</td></tr>"
        for name, what in names.items()
    )
    return f"""<div class="choices" data-choices data-rows="{plan.rows}" data-low="{low}" data-high="{high}"
 data-epsilon="{point.epsilon!r}" data-spent="{spent_so_far}" data-told="{escape(told)}">
<script type="application/json">{table}</script>
<div class="choices-odds">
<figure><figcaption data-text="people">{people}</figcaption></figure>
<div><p data-text="together"{"" if together else " hidden"}>{escape(together)}</p>
<p data-text="odds">{odds}</p>
<p data-text="example">{example}</p></div>
</div>
<div class="choices-cautions" data-texts="cautions">{_paragraphs(cautions(plan, besides))}</div>
<table class="choices-figures">
<caption>Typical error, in the label's unit. <span data-text="span">{escape(span)}</span></caption>
<thead><tr><th scope="col">of</th><th scope="col">about</th></tr></thead>
<tbody>{rows}</tbody></table>
<div class="choices-notes" data-texts="notes">{_paragraphs(plan.notes())}</div>
<p class="choices-live" role="status"></p>
</div>"""


def _together(plan: Preview, total: str, score: float, told: str) -> str:
    """Return what odds are counted of, unless it is this release alone."""
    (point,), people = plan.budgets, plan.rows_per_person
    amounts = {
        "now": rounded_up(group_budget(Budget(point.epsilon), people).epsilon, 4),
        "score": rounded_up(group_budget(Budget(score), people).epsilon, 4) if score else "",
        "spent": told,
    }
    parts = [_PARTS[name].format(amount=amount) for name, amount in amounts.items() if amount]
    return _TOGETHER.format(epsilon=total, parts="; ".join(parts)) if len(parts) > 1 else ""


def _paragraphs(texts: list[str]) -> str:
    return "".join(f"<p>{escape(text)}</p>" for text in texts)
