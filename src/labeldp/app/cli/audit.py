"""``labeldp audit`` and ``canaries``: lower bounds on ε, from samples of mechanisms or from one fit."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from labeldp.accounts.card import Card
from labeldp.accounts.explanation import private_column
from labeldp.app.card_files import read_card_file
from labeldp.app.cli.commands import command
from labeldp.app.cli.own_mechanisms import import_modules
from labeldp.app.cli.shell import EXIT, is_interactive, print_result
from labeldp.app.options import Bounds, CardFile, DialectOptions, Drop, Force, Format, Label, Modules, Source
from labeldp.errors import ParameterError
from labeldp.evidence import privacy_audit

_OWNER_ONLY = (
    "This follows from true labels: keep it to yourself. It is on no card and in no report.",
    "Assumed: a model without a leak is as far from labels that it learnt as from those held out, and private "
    "labels follow from labels alone.",
    "A bound of 0 is no proof of privacy.",
)
_CANARIES = (
    "This follows from the labels of canaries alone: it may be published.",
    "A bound of 0 is no proof of privacy, and other rows may be treated otherwise.",
)


@command(
    "Check",
    "private.parquet.card.json --samples 200000, or: labeldp audit model canaries.csv --canaries",
    stopped="Stopped; no verdict.",
)
def audit(
    card_file: CardFile,
    table: Annotated[
        str | None,
        Argument(
            metavar="TABLE", help="The table that was learnt, to audit the one fit or release that was made."
        ),
    ] = None,
    samples: Annotated[int, Option(help="Outputs to draw for each of four labels.")] = 1_000_000,
    confidence: Annotated[
        float | None,
        Option(metavar="P", help="Probability that a true claim is not refuted; 0.999999, and 0.95 with TABLE."),
    ] = None,
    modules: Modules = (),
    *,
    label: Annotated[
        str | None, Option(metavar="COLUMN", help="The column of labels in TABLE; by default that of the card.")
    ] = None,
    canaries: Annotated[
        bool,
        Option(
            "--canaries",
            help="TABLE is the file that labeldp canaries wrote: no other label is read. For a table of private "
            "labels they were the last rows.",
        ),
    ] = False,
    for_owner: Annotated[
        bool,
        Option(
            "--for-owner",
            help="Print a result of true labels though no terminal shows it; nobody but the owner may read it.",
        ),
    ] = False,
    format: Format = None,
    dialect: DialectOptions,
) -> None:
    """Measure a lower bound on ε, and whether it refutes the claims of a card.

    Of a card alone, each mechanism is built anew, proven, and sampled with fresh secure random words at four
    synthetic labels. With TABLE, predictions or private labels guess labels that were learnt: of canaries, or true
    ones. Ends with exit code 4 if a claim is refuted, except by true labels.

    Releases: nothing, and nothing is spent. True labels are read only from TABLE without --canaries, and the
    result is then shown on a terminal only.
    """
    import_modules(modules)
    path, text = read_card_file(card_file)
    card = Card.parse(text)
    if "regression" in card.content:
        raise ParameterError(
            "a regression table has no mechanism to sample, and predicts no canaries: labeldp.audit_pipeline "
            "audits the function that makes it"
        )
    if table is None:
        is_refuted = _sample_mechanisms(path, card, samples, 0.999999 if confidence is None else confidence)
    else:
        is_watched = sys.stdout.isatty() and is_interactive()
        if not (canaries or for_owner or is_watched):
            raise ParameterError(
                "the result follows from true labels, and no terminal shows it: run this on a terminal, audit "
                "canaries, or add --for-owner if nobody else reads the output"
            )
        from labeldp.app.learnt_rows import read_learnt, refuse_true_labels

        label = label or private_column(card.content)
        if canaries:
            refuse_true_labels(table, label)
        rows = read_learnt(path, card, table, label=label, last_rows=canaries, format=format, dialect=dialect)
        run = rows.audit_canaries if canaries else rows.audit_true_labels
        result = run(0.95 if confidence is None else confidence)
        print_result(f"Audit of {path}, by {'canaries' if canaries else 'true labels'}", style="bold")
        print_result(result.summary(), style="red" if result.detected else None)
        print_result(*(_CANARIES if canaries else _OWNER_ONLY), style="dim")
        is_refuted = canaries and result.detected  # an exit code follows from no true label
    if is_refuted:
        raise typer.Exit(EXIT["claim"])


def _sample_mechanisms(path: Path, card: Card, samples: int, confidence: float) -> bool:
    """Print the audit of each mechanism of a card, and return True if it refutes a claim."""
    mechanisms = list(dict.fromkeys(card.terms.mechanisms))
    if not mechanisms:
        raise ParameterError(
            "the card has no mechanism to sample: audit the fit itself with labeldp.audit_pipeline, or this one "
            "with its canaries"
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
    return is_refuted


@command("Check", "homes.csv --label price --bounds 0 5 --rows 500 -o canaries.csv")
def canaries(
    source: Source,
    out: Annotated[
        Path, Option("--out", "-o", metavar="OUT", help="The canaries: a .csv, .tsv or .parquet file.")
    ],
    *,
    label: Label,
    bounds: Bounds,
    rows: Annotated[
        int, Option(help="Number of canaries; a thousand show ε up to 5. All of them are false data in the fit.")
    ] = 500,
    drop: Drop = (),
    format: Format = None,
    force: Force = False,
    dialect: DialectOptions,
) -> None:
    """Make canaries: rows with random labels, to add to a table before a fit, and to audit the fit by.

    Values of all other columns are drawn from the table, column by column: name those that are not public in
    --drop, and they are empty. Each label is one of the bounds, by a fair coin.

    Releases: OUT, with values of public columns and without any true label. Labels are not read.
    """
    from labeldp.app.learnt_rows import write_canaries

    write_canaries(
        source, out, label=label, bounds=bounds, rows=rows, drop=drop, format=format, dialect=dialect, force=force
    )
    print_result(
        f"{rows:,} canaries are in {out}. Add them to the end of the table, and fit or privatize it. Then: "
        f"labeldp audit MODEL {out} --canaries",
        "A score of that fit, and the error that a release states, count canaries too. Their mean error is "
        "half the bounds' width, so both are too large for the other rows.",
    )
