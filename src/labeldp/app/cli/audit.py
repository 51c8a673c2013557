"""``labeldp audit``: sample a card's mechanisms, and see whether their outputs break what it claims."""

from __future__ import annotations

import math
from pathlib import Path

import typer
from rich.table import Table

from labeldp.accounts.budget import rounded_up
from labeldp.accounts.reading import ReadCard, read_any_card
from labeldp.app.card_files import read_card_file
from labeldp.app.cli.command import command
from labeldp.app.cli.own_mechanisms import import_modules
from labeldp.app.cli.shell import EXIT, PlainConsole, progress, tell
from labeldp.errors import ParameterError
from labeldp.evidence.audit_result import Audit
from labeldp.evidence.loss_bounds import POWER
from labeldp.evidence.privacy_audit import audit as audit_mechanism
from labeldp.evidence.privacy_audit import default_labels
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
    if not read.terms.mechanisms:
        raise ParameterError(
            "a model's card carries no mechanism to sample: audit the fit itself with labeldp.audit_pipeline"
        )
    audits = _audit_each(read, samples, confidence)
    console.print(_table(read, audits, path, confidence))
    refuted = [(name, one) for name, one in audits if one.detected]
    for name, one in refuted:
        console.print(f"{name}: {one.summary()}", style="red")
    others = [charge.what for charge in read.terms.charges if charge.purpose != "labels"]
    if others:
        needs = f"Not sampled, because it needs the data: {', '.join(others)}."
        tell(console, f"{needs} labeldp.audit_pipeline audits all of it.", "dim")
    if refuted:
        raise typer.Exit(EXIT["claim"])


def _audit_each(read: ReadCard, samples: int, confidence: float) -> list[tuple[str, Audit]]:
    """Audit each different mechanism once; the chance of an error is split evenly among them."""
    different: dict[Mechanism, None] = dict.fromkeys(read.terms.mechanisms)
    sure = 1 - (1 - confidence) / len(different)
    audits = []
    with progress() as update:
        for k, mechanism in enumerate(different):
            total, done = samples * default_labels(mechanism).size, 0
            what = f"Sampling {mechanism.name}, {k + 1} of {len(different)}"

            def advance(outputs: int, what: str = what, total: int = total) -> None:
                nonlocal done
                done += outputs
                update(what, done, total)

            one = audit_mechanism(mechanism, samples=samples, confidence=sure, progress=advance)
            audits.append((mechanism.name, one))
    return audits


def _table(read: ReadCard, audits: list[tuple[str, Audit]], card: Path, confidence: float) -> Table:
    table = Table(title=f"Audit of {card.name}, a card of a {read.kind}", title_justify="left")
    for name in ("mechanism", "claimed ε", "proven ε ≤", "measured ε ≥", "detectable", "verdict"):
        table.add_column(name, justify="left" if name in ("mechanism", "verdict") else "right")
    for name, one in audits:
        claim, proven = ("" if bound is None else rounded_up(bound) for bound in (one.claimed, one.proven))
        table.add_row(
            name,
            claim + (f", δ {rounded_up(one.delta, 3)}" if one.delta else ""),
            proven,
            f"{one.epsilon:.4g}",
            "" if one.detected else _detectable(one),
            f"{one.verdict}, {one.refuted}" if one.detected else one.verdict,
            style="red" if one.detected else "green",
        )
    events = sum(len(one.tested) for _, one in audits)
    table.caption = (
        f"{audits[0][1].samples:,} samples of each label; {events} events, by which a true claim is refuted with "
        f"probability {1 - confidence:.2g} at most; detectable: an ε that would be detected with probability "
        f"{POWER:g}, at best"
    )
    table.caption_justify = "left"
    return table


def _detectable(one: Audit) -> str:
    return "nothing" if one.detectable is None or math.isinf(one.detectable) else f"{one.detectable:.4g}"
