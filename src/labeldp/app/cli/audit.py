"""``labeldp audit``: sample a card's mechanisms, and see whether their outputs break what it claims."""

from __future__ import annotations

from pathlib import Path

import typer

from labeldp.accounts.card import Card
from labeldp.app.card_files import read_card_file
from labeldp.app.cli import command
from labeldp.app.cli.shell import EXIT, PlainConsole, tell
from labeldp.errors import ParameterError
from labeldp.evidence import privacy_audit


@command("card_file", "samples", "confidence", "modules", stopped="Stopped; no verdict.")
def audit(card_file: Path, samples: int, confidence: float) -> None:
    """Measure from samples whether the mechanisms of a card satisfy what it claims.

    Each mechanism is built anew, proven, and sampled with fresh secure random words at four synthetic labels. Ends
    with exit code 4 if a claim is refuted.

    What is released: nothing. No real label is needed, and nothing is spent.
    """
    path, text = read_card_file(card_file)
    card, console = Card.parse(text), PlainConsole()
    mechanisms = list(dict.fromkeys(card.terms.mechanisms))
    if not mechanisms:
        raise ParameterError(
            "a model's card carries no mechanism to sample: audit the fit itself with labeldp.audit_pipeline"
        )
    sure = 1 - (1 - confidence) / len(mechanisms)  # the chance of an error is split evenly among them
    tell(console, f"Audit of {path.name}, a card of a {card.kind}", style="bold")
    is_refuted = False
    for mechanism in mechanisms:
        result = privacy_audit.audit(mechanism, samples=samples, confidence=sure)
        tell(console, f"{mechanism.name}: {result.summary()}", style="red" if result.detected else None)
        is_refuted |= result.detected
    tell(console, f"A true claim is refuted with probability {1 - confidence:.2g} at most.", style="dim")
    if others := [charge.description for charge in card.terms.charges if charge.purpose != "labels"]:
        needs = f"Not sampled, because it needs the data: {', '.join(others)}."
        tell(console, f"{needs} labeldp.audit_pipeline audits all of it.", style="dim")
    if is_refuted:
        raise typer.Exit(EXIT["claim"])
