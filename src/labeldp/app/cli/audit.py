"""``labeldp audit``: sample a card's mechanisms, and see whether their outputs break what it claims."""

from __future__ import annotations

import math
from pathlib import Path

import typer

from labeldp.accounts.budget import rounded_up
from labeldp.accounts.reading import read_any_card
from labeldp.app.card_files import read_card_file
from labeldp.app.cli import command
from labeldp.app.cli.own_mechanisms import import_modules
from labeldp.app.cli.shell import EXIT, PlainConsole, figure_table, progress, tell
from labeldp.errors import ParameterError
from labeldp.evidence.audit_result import Audit
from labeldp.evidence.loss_bounds import POWER
from labeldp.evidence.privacy_audit import audit as audit_mechanism
from labeldp.mechanisms.base import Mechanism


@command("card_file", "samples", "confidence", "modules", stopped="Stopped; no verdict.")
def audit(card_file: Path, samples: int, confidence: float, modules: list[str]) -> None:
    """Measure from samples whether the mechanisms of a card satisfy what it claims.

    Each mechanism is built anew, proven, and sampled with fresh secure random words at four synthetic labels. Ends
    with exit code 4 if a claim is refuted.

    What is released: nothing. No real label is needed, and nothing is spent.
    """
    console = PlainConsole()
    import_modules(modules)
    path, text = read_card_file(card_file)
    read = read_any_card(text)
    mechanisms = list(dict.fromkeys(read.terms.mechanisms))
    if not mechanisms:
        raise ParameterError(
            "a model's card carries no mechanism to sample: audit the fit itself with labeldp.audit_pipeline"
        )
    sure = 1 - (1 - confidence) / len(mechanisms)  # the chance of an error is split evenly among them
    audits = []
    with progress() as bars:
        for k, mechanism in enumerate(mechanisms):
            if bars is not None:
                bars(f"Sampling {mechanism.name}", k, len(mechanisms))
            audits.append(audit_mechanism(mechanism, samples=samples, confidence=sure))
    rows = [_row(mechanism, one) for mechanism, one in zip(mechanisms, audits, strict=True)]
    header = ["mechanism", "claimed ε", "proven ε ≤", "measured ε ≥", "detectable", "verdict"]
    console.print(figure_table(f"Audit of {path.name}, a card of a {read.kind}", header, rows))
    tell(
        console,
        f"{audits[0].samples:,} samples of each label; {sum(len(one.tested) for one in audits)} events, by which "
        f"a true claim is refuted with probability {1 - confidence:.2g} at most; detectable: an ε that would be "
        f"detected with probability {POWER:g}, at best",
        style="dim",
    )
    refuted = [f"{row[0]}: {one.summary()}" for row, one in zip(rows, audits, strict=True) if one.detected]
    tell(console, *refuted, style="red")
    others = [charge.what for charge in read.terms.charges if charge.purpose != "labels"]
    if others:
        needs = f"Not sampled, because it needs the data: {', '.join(others)}."
        tell(console, f"{needs} labeldp.audit_pipeline audits all of it.", style="dim")
    if refuted:
        raise typer.Exit(EXIT["claim"])


def _row(mechanism: Mechanism, one: Audit) -> list[str]:
    """Return what a table shows of an audit."""
    claim, proven = ("" if bound is None else rounded_up(bound) for bound in (one.claimed, one.proven))
    delta = f", δ {rounded_up(one.delta, 3)}" if one.delta else ""
    detectable = one.detectable if one.detectable is not None else math.inf
    reach = "nothing" if math.isinf(detectable) else f"{detectable:.4g}"
    if one.detected:
        return [mechanism.name, claim + delta, proven, f"{one.epsilon:.4g}", "", f"{one.verdict}, {one.refuted}"]
    return [mechanism.name, claim + delta, proven, f"{one.epsilon:.4g}", reach, one.verdict]
