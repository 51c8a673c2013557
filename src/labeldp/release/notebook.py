"""How a release or a model shows itself in a notebook: the explanation as a panel, all text escaped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from labeldp.release.explanation import Explanation

_BOX = (
    "font-family:system-ui,sans-serif;line-height:1.45;max-width:60em;padding:.7em 1em;"
    "border:1px solid rgba(128,128,128,.45);border-radius:6px"
)
_WARNING = "border-left:4px solid #c62828;padding-left:.6em;font-weight:600"
_CELL = "text-align:left;padding:.1em 1.2em .1em 0"


def panel(explanation: Explanation, facts: Mapping[str, str], headings: Sequence[str], *, code: str = "") -> str:
    """Return a panel of HTML: title, warnings, facts, the first of some sections, and the others folded.

    Parameters
    ----------
    explanation : Explanation
    facts : mapping of str to str
        What to show at a glance.
    headings : sequence of str
        Which sections of the explanation.
    code : str
        What to show under the title, as code.
    """
    first, *others = [name for name in headings if name in explanation.sections]
    parts = [f'<div style="{_BOX}"><div><b>{escape(explanation.title)}</b></div>']
    if code:
        parts.append(f'<code style="white-space:pre-wrap">{escape(code)}</code>')
    parts += [f'<p style="{_WARNING}">{escape(warning)}</p>' for warning in explanation.warnings]
    rows = "".join(
        f'<tr><th scope="row" style="{_CELL};font-weight:normal;opacity:.75">{escape(name)}</th>'
        f'<td style="{_CELL}">{escape(value)}</td></tr>'
        for name, value in facts.items()
    )
    parts.append(f'<table style="border-collapse:collapse;margin:.5em 0">{rows}</table>')
    parts.append(_paragraphs(explanation.sections[first]))
    for name in others:
        inner = _paragraphs(explanation.sections[name])
        parts.append(f'<details><summary style="cursor:pointer">{escape(name)}</summary>{inner}</details>')
    return "".join([*parts, "</div>"])


def _paragraphs(sentences: Sequence[str]) -> str:
    return "".join(
        f'<p style="margin:.25em 0;white-space:pre-wrap">{escape(sentence)}</p>' for sentence in sentences
    )
