"""``labeldp audit``: sample a card's mechanisms, and see whether their outputs break what it claims."""

from __future__ import annotations

from pathlib import Path

import typer

from labeldp.accounts.reading import read_any_card
from labeldp.app.card_files import read_card_file
from labeldp.app.cli import command
from labeldp.app.cli.shell import EXIT, PlainConsole, progress, tell
from labeldp.errors import ParameterError
from labeldp.evidence.privacy_audit import audit as audit_mechanism


@command("card_file", "samples", "confidence", "modules", stopped="Stopped; no verdict.")
def audit(card_file: Path, samples: int, confidence: float) -> None:
    """Measure from samples whether the mechanisms of a card satisfy what it claims.

    Each mechanism is built anew, proven, and sampled with fresh secure random words at four synthetic labels. Ends
    with exit code 4 if a claim is refuted.

    What is released: nothing. No real label is needed, and nothing is spent.
    """
    console = PlainConsole()
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
    tell(console, f"Audit of {path.name}, a card of a {read.kind}", style="bold")
    for mechanism, one in zip(mechanisms, audits, strict=True):
        tell(console, f"{mechanism.name}: {one.summary()}", style="red" if one.detected else None)
    tell(console, f"A true claim is refuted with probability {1 - confidence:.2g} at most.", style="dim")
    others = [charge.what for charge in read.terms.charges if charge.purpose != "labels"]
    if others:
        needs = f"Not sampled, because it needs the data: {', '.join(others)}."
        tell(console, f"{needs} labeldp.audit_pipeline audits all of it.", style="dim")
    if any(one.detected for one in audits):
        raise typer.Exit(EXIT["claim"])
