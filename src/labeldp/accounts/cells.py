"""Tables of cells as text: CSV, and LaTeX for the package booktabs."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence

_LATEX = (
    {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "²": "$^2$", "–": "--"}
    | {"ε": r"$\varepsilon$", "δ": r"$\delta$", "±": r"$\pm$", "−": "$-$", "×": r"$\times$", "≈": r"$\approx$"}
    | {mark: f"${mark}$" for mark in "|<>"}
    | {mark: f"\\{mark}" for mark in "&%$#_{}"}
)


def as_csv(rows: Iterable[Iterable[object]]) -> str:
    r"""Return rows, the header among them, as CSV.

    Examples
    --------
    >>> as_csv([["of", "error"], ["rp, one label", 0.5]])
    'of,error\n"rp, one label",0.5\n'
    """
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def as_latex(text: str) -> str:
    r"""Return plain text for LaTeX.

    Examples
    --------
    >>> print(as_latex("age**2 at ε = 50 %"))
    age$^2$ at $\varepsilon$ = 50 \%
    """
    return re.sub(r"\*\*(\d)", r"$^\1$", "".join(_LATEX.get(character, character) for character in text))


def latex_tabular(rows: Iterable[Sequence[str]], align: str = "r", fact_rows: int = 0) -> list[str]:
    r"""Return the lines of a table: names on the left, then columns of figures; first the header.

    The last ``fact_rows`` rows stand below a rule.

    Examples
    --------
    >>> print(*latex_tabular([["", "(1)"], ["[age]", "0.3"], ["N", "50"]], "c", 1), sep="\n")
    \begin{tabular}{lc}
    \toprule
     & (1) \\
    \midrule
    {}[age] & 0.3 \\
    \midrule
    N & 50 \\
    \bottomrule
    \end{tabular}
    """
    head, *body = (" & ".join(map(as_latex, row)) + r" \\" for row in rows)
    body = [f"{{}}{row}" if row.startswith(("[", "*")) else row for row in body]  # else options of the row above
    if fact_rows:
        body.insert(len(body) - fact_rows, r"\midrule")
    start = rf"\begin{{tabular}}{{l{align * head.count(' & ')}}}"
    return [start, r"\toprule", head, r"\midrule", *body, r"\bottomrule", r"\end{tabular}"]
