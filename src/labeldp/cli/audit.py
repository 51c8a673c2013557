"""``labeldp audit``: sample a card's mechanisms, and see whether their outputs break what it claims."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from labeldp._values import rounded_up
from labeldp.audit import Audit
from labeldp.audit.bounds import POWER
from labeldp.audit.run import audit as audit_mechanism
from labeldp.audit.run import default_labels
from labeldp.cards.reading import ReadCard, read_any_card
from labeldp.cli.own_mechanisms import Modules, import_modules
from labeldp.cli.shell import EXIT, PlainConsole, explained, progress
from labeldp.errors import ParameterError
from labeldp.jobs.card_files import read_card_file
from labeldp.mechanisms.base import Mechanism


def audit(
    card: Annotated[
        Path, typer.Argument(metavar="CARD", help="A card of a mechanism or a release, or the file beside it.")
    ],
    samples: Annotated[
        int, typer.Option(min=100, metavar="N", help="Outputs to draw for each of four labels.")
    ] = 1_000_000,
    confidence: Annotated[
        float,
        typer.Option(
            min=0.5,
            max=1 - 1e-12,
            metavar="P",
            help="Probability that a true claim is not refuted. It says nothing of acquittals.",
        ),
    ] = 0.999999,
    modules: Modules = None,
) -> None:
    """Measure from samples whether the mechanisms of a card keep what it claims.

    Each mechanism is built anew, proven, and sampled with fresh secure words at four synthetic labels. Ends with
    exit code 4 if a claim is refuted.

    What leaves: nothing. No real label is needed, and nothing is spent.
    """
    console = PlainConsole()
    with explained("Stopped; no verdict."):
        import_modules(modules)
        path, text = read_card_file(card)
        read = read_any_card(text)
        if not read.terms.mechanisms:
            raise ParameterError(
                "a model's card carries no mechanism to sample: audit the fit itself with labeldp.audit_pipeline"
            )
        audits = _audit_each(read, samples, confidence)
        console.print(_table(read, audits, path, confidence))
        for name, one in audits:
            if one.convicted:
                console.print(f"{name}: {one.summary()}", style="red")
        _limits(read, console)
        if any(one.convicted for _, one in audits):
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
                if update is not None:
                    update(what, done, total)

            one = audit_mechanism(mechanism, samples=samples, confidence=sure, progress=advance)
            if not one.convicted:
                one.showable  # noqa: B018 (computed here, while the bar is shown, and kept)
            audits.append((mechanism.name, one))
    return audits


def _table(read: ReadCard, audits: list[tuple[str, Audit]], card: Path, confidence: float) -> Table:
    table = Table(title=f"Audit of {card.name}, a card of a {read.kind}", title_justify="left")
    for name in ("mechanism", "claimed ε", "proven ε ≤", "measured ε ≥", "could have shown", "verdict"):
        table.add_column(name, justify="left" if name in ("mechanism", "verdict") else "right")
    for name, one in audits:
        claim, proven = ("" if bound is None else rounded_up(bound) for bound in (one.claimed, one.proven))
        table.add_row(
            name,
            claim + (f", δ {rounded_up(one.delta, 3)}" if one.delta else ""),
            proven,
            f"{one.epsilon:.4g}",
            "" if one.convicted else _could_have_shown(one),
            f"{one.verdict}, {one.refuted}" if one.convicted else one.verdict,
            style="red" if one.convicted else "green",
        )
    events = sum(len(one.tested) for _, one in audits)
    table.caption = (
        f"{audits[0][1].samples:,} samples of each label; {events} events, by which a true claim is refuted with "
        f"probability {1 - confidence:.2g} at most; could have shown: the same mechanism, built for this ε, would "
        f"be convicted with probability {POWER:g}"
    )
    table.caption_justify = "left"
    return table


def _could_have_shown(one: Audit) -> str:
    least = one.best_case if one.showable is None else one.showable
    if least is None or math.isinf(least):
        return "nothing"
    return f"{least:.4g}" if one.showable is not None else f"at best {least:.4g}"


def _limits(read: ReadCard, console: Console) -> None:
    """Say what a card's audit does not reach."""
    others = [charge.what for charge in read.terms.charges if charge.purpose != "labels"]
    if others:
        console.print(
            f"Not sampled, for it needs the data: {', '.join(others)}. labeldp.audit_pipeline audits all of it.",
            style="dim",
        )
