"""``labeldp audit``: sample the mechanisms of a card, and measure whether their outputs break its claims."""

from __future__ import annotations

from typing import Annotated

import typer
from typer import Option

from labeldp.accounts.card import Card
from labeldp.app.card_files import read_card_file
from labeldp.app.cli.commands import command
from labeldp.app.cli.own_mechanisms import import_modules
from labeldp.app.cli.shell import EXIT, print_result
from labeldp.app.options import CardFile, Modules
from labeldp.errors import ParameterError
from labeldp.evidence import privacy_audit


@command("Check", "private.parquet.card.json --samples 200000", stopped="Stopped; no verdict.")
def audit(
    card_file: CardFile,
    samples: Annotated[int, Option(help="Outputs to draw for each of four labels.")] = 1_000_000,
    confidence: Annotated[
        float, Option(metavar="P", help="Probability that a true claim is not refuted.")
    ] = 0.999999,
    modules: Modules = (),
) -> None:
    """Measure from samples whether the mechanisms of a card satisfy its claims.

    Each mechanism is built anew, proven, and sampled with fresh secure random words at four synthetic labels. Ends
    with exit code 4 if a claim is refuted.

    Releases: nothing. No real label is needed, and nothing is spent.
    """
    import_modules(modules)
    path, text = read_card_file(card_file)
    card = Card.parse(text)
    mechanisms = list(dict.fromkeys(card.terms.mechanisms))
    if not mechanisms:
        raise ParameterError(
            "the card has no mechanism to sample: audit the fit itself with labeldp.audit_pipeline"
        )
    confidence_of_each = 1 - (1 - confidence) / len(mechanisms)
    print_result(f"Audit of {path.name}, a card of a {card.kind}", style="bold")
    is_refuted = False
    for mechanism in mechanisms:
        result = privacy_audit.audit(mechanism, samples=samples, confidence=confidence_of_each)
        print_result(f"{mechanism.name}: {result.summary()}", style="red" if result.detected else None)
        is_refuted |= result.detected
    print_result(f"A true claim is refuted with probability {1 - confidence:.2g} at most.", style="dim")
    if unsampled := [charge.description for charge in card.terms.charges if charge.purpose != "labels"]:
        needs = f"Not sampled, because it needs the data: {', '.join(unsampled)}."
        print_result(f"{needs} labeldp.audit_pipeline audits all of it.", style="dim")
    if is_refuted:
        raise typer.Exit(EXIT["claim"])
