"""``labeldp fit``: a private model from a table, in a folder that is safe to open."""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Console

from labeldp._validation import as_delta, as_epsilon, as_roomy_bounds
from labeldp.cli import options
from labeldp.cli.options import Inputs, read_inputs
from labeldp.cli.shell import explained, news, tell
from labeldp.errors import DataError, NotUnbiasedError, ParameterError
from labeldp.estimators import LabelReleaseRegressor, ModelReleaseRegressor, private_risk, private_score
from labeldp.files.places import refuse_same, refuse_target
from labeldp.ledger import Budget, Charge, new_charge, refuse_overspend, total_of
from labeldp.report import Section, require_matplotlib, write_report

__all__ = ["fit"]


class Leaves(StrEnum):
    """What may leave the safe room."""

    model = "model"
    labels = "labels"


def fit(
    source: options.Source,
    label: options.Label,
    bounds: options.Bounds,
    epsilon: options.Epsilon,
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder for the model.", show_default=False)],
    release: Annotated[
        Leaves,
        typer.Option(help="What leaves: the model alone, which mostly predicts better, or private labels too."),
    ] = Leaves.model,
    features: options.Features = None,
    drop: options.Drop = None,
    categories: options.Categories = None,
    missing: options.Missing = options.Policy.error,
    delta: options.Delta = 0.0,
    ledger: options.LedgerFile = None,
    limit: options.Limit = None,
    limit_delta: options.LimitDelta = 0.0,
    rows_per_person: options.RowsPerPerson = 1,
    score: Annotated[
        float | None,
        typer.Option(help="ε more, to measure the error on a tenth of the rows, held out.", show_default=False),
    ] = None,
    format: options.InputFormat = None,
    separator: options.Separator = None,
    decimal: options.Decimal = None,
    thousands: options.Thousands = None,
    encoding: options.Encoding = None,
    na: options.Na = None,
    report: options.Report = None,
    force: options.Force = False,
) -> None:
    """Learn to predict a private column, and save a model that keeps ε for every label.

    All other columns are public features: numbers, booleans, dates and text,
    and a missing value is no obstacle. The budget is charged after everything
    that can be checked without labels.
    """
    with explained():
        as_epsilon(epsilon)
        as_roomy_bounds(bounds)
        as_delta(delta, smallest=0.0)
        if delta and release is Leaves.labels:
            raise ParameterError("--delta goes with --release model: labels are randomised with pure ε")
        refuse_same({"the model": out, "the ledger": ledger, "the report": report}, {"the table": source})
        book = options.open_ledger(ledger, limit, limit_delta)
    with explained(
        "Stopped. A model that is there is whole; the ledger, if there is one, says what was paid.",
        book,
    ):
        from labeldp.files.models import model_folder, write_model  # noqa: PLC0415 (an extra)

        later = _score_charges(score, rows_per_person)
        refuse_overspend(
            book.limit,
            book.charges,
            [new_charge("model", Budget(epsilon), purpose="other", rows_per_person=rows_per_person), *later],
        )
        if report is not None:
            require_matplotlib()
            refuse_target(str(report), force=force)

        screen = news()
        with model_folder(out, force=force) as draft:
            inputs = read_inputs(
                source,
                label,
                features=features,
                drop=drop,
                categories=categories,
                missing=missing,
                format=format,
                dialect=options.as_dialect(separator, decimal, thousands, encoding, na),
            )
            for message in inputs.notes:
                tell(screen, message)
            train, test = _parts(len(inputs.labels), held_out=score is not None)
            shared: dict[str, Any] = {
                "epsilon": epsilon,
                "bounds": bounds,
                "rows_per_person": rows_per_person,
                "ledger": book,
                "verbose": screen.is_terminal,
            }
            model: Any
            if release is Leaves.model:
                model = ModelReleaseRegressor(**shared, delta=delta)
            else:
                model = LabelReleaseRegressor(**shared)
            with book.reserve(later):
                model.fit(inputs.X[train], inputs.labels[train])
            note = score_note(model.charges_, later, len(inputs.labels[test])) if later else None
            card = write_model(model, inputs.encoder, draft, label=label, note=note)
        console = Console()
        tell(console, model.summary())
        if score is None:
            expected = quality(model, inputs.X[train])
        else:
            risk = private_score(
                model,
                inputs.X[test],
                inputs.labels[test],
                epsilon=score,
                bounds=bounds,
                ledger=book,
                rows_per_person=rows_per_person,
            )
            expected = [f"Measured on rows held out, for {risk.cost} more: {risk.summary()}", str(note)]
        for line in expected:
            tell(console, line)
        tell(console, f"The model is in {out}:  labeldp predict {out} TABLE -o OUT")
        if release is Leaves.labels:
            tell(console, f"The private labels are in {out / 'release.npz'} too; both may be made public.")
        if report is not None:
            parts = report_sections(label, inputs, expected)
            write_report(
                report,
                card,
                ledger=book if ledger else None,
                besides=book.own_charges[len(model.charges_) :],
                sections=parts,
                force=force,
            )
            tell(console, f"The report is in {report}.")
        if book.remaining is not None:
            tell(console, f"The ledger {ledger} has {book.remaining} left.")
        elif ledger is None:
            tell(console, "No ledger was kept: fitting these labels again costs again, and nobody counts it.")


def _score_charges(score: float | None, rows_per_person: int) -> list[Charge]:
    """Return what a score will cost, if one was asked for."""
    if score is None:
        return []
    return [new_charge("score", Budget(as_epsilon(score)), purpose="score", rows_per_person=rows_per_person)]


def score_note(paid: Sequence[Charge], later: Sequence[Charge], rows: int) -> str:
    """Return what a score costs beside its model: for the screen, the card and the report, in the same words."""
    both = total_of([*paid, *later])
    score = total_of(later)
    says = f"The score on {rows:,} rows held out costs {score} on top of the model: {both} in all."
    if any(charge.rows_per_person > 1 for charge in later):
        return says + " A person may have rows on both sides, so both count."
    return says + (
        " No row was both learnt from and held out, so whoever has one row is exposed to the larger of the two; "
        "the ledger counts the sum, which holds for everyone."
    )


def _parts(rows: int, *, held_out: bool) -> tuple[Any, Any]:
    """Return the rows to learn from, and a tenth to judge by if that was asked for: which ones is public."""
    if not held_out:
        return slice(None), slice(0)
    if rows < 100:
        raise DataError(f"{rows} rows are too few to hold some out: leave --score out")
    order = np.random.default_rng(0).permutation(rows)
    return np.sort(order[rows // 10 :]), np.sort(order[: rows // 10])


def report_sections(label: str, inputs: Inputs, expected: list[str]) -> list[Section]:
    """Return what a report says of a fit beyond its card; all of it is public, or paid for."""
    kinds = [[column.name, column.kind, str(column.width)] for column in inputs.encoder.columns]
    left = [[name, f"left out: {why}", "0"] for name, why in inputs.encoder.left_out]
    return [
        Section("How good the model should be", [line.strip() for line in expected]),
        Section(
            "The public columns",
            [f"The model predicts {label!r} from these columns, encoded without looking at any label."],
            header=["column", "what it is", "numbers it becomes"],
            rows=[*kinds, *left],
        ),
    ]


def quality(model: Any, X: NDArray[np.float64]) -> list[str]:
    """Return how good a model should be, by what left the room already; nothing if that does not tell.

    A model's own idea of its error rests on an assumed shape of what it could not see, and came out too good on
    real tables. So nothing is said where there is only that.
    """
    if isinstance(model, LabelReleaseRegressor):
        try:
            risk = private_risk(model, X, model.release_)
        except NotUnbiasedError:
            pass
        else:
            most = math.sqrt(max(risk.mse + 2 * risk.standard_error + risk.hidden, 0.0))
            return [
                f"How good it should be, at no further cost: a typical error of ±{most:.3g} or less.",
                f"  {risk.summary()}",
            ]
    return ["How good it is was not measured: --score 0.2 would, on rows held out, for ε = 0.2 more."]
