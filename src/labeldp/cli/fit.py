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

from labeldp._validation import as_delta, as_epsilon, as_fraction, as_roomy_bounds
from labeldp.cli import options
from labeldp.cli.options import Inputs, read_inputs
from labeldp.cli.shell import explained, news, tell
from labeldp.errors import DataError, NotUnbiasedError, ParameterError
from labeldp.estimators import LabelReleaseRegressor, ModelReleaseRegressor, Risk, private_risk, private_score
from labeldp.estimators.quality import terms_with_score
from labeldp.estimators.score_sums import ScorePlan
from labeldp.files.places import refuse_same, refuse_target
from labeldp.ledger import Budget, Charge, new_charge, refuse_overspend, total_of
from labeldp.release.numbers import number
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
    metrics: Annotated[
        str, typer.Option(help="What --score measures, such as rmse,mae,r2: they share its ε.")
    ] = "rmse",
    format: options.InputFormat = None,
    separator: options.Separator = None,
    decimal: options.Decimal = None,
    thousands: options.Thousands = None,
    encoding: options.Encoding = None,
    na: options.Na = None,
    sheet: options.SheetName = None,
    formulas: options.Formulas = None,
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
        from labeldp.files.models import add_to_card, model_folder, write_model  # noqa: PLC0415 (an extra)

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
                dialect=options.as_dialect(separator, decimal, thousands, encoding, na, sheet, formulas),
            )
            train, test, notes = _parts(len(inputs.labels), score, bounds, metrics)
            for message in [*inputs.notes, *notes]:
                tell(screen, message)
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
        how = {"epsilon": score, "bounds": bounds, "ledger": book, "rows_per_person": rows_per_person}
        risk, expected = _judge(model, inputs, train, test, metrics, how)
        terms = model.terms_ if risk is None else terms_with_score(model.terms_, risk)
        card = card if risk is None else add_to_card(out, card, terms, quality=risk.as_data())
        expected += [note] if note else []
        for line in expected:
            tell(console, line)
        tell(console, f"The model is in {out}:  labeldp predict {out} TABLE -o OUT")
        if release is Leaves.labels:
            tell(console, f"The private labels are in {out / 'release.npz'} too; both may be made public.")
        if report is not None:
            parts = report_sections(label, inputs, expected, risk)
            write_report(
                report,
                card,
                ledger=book if ledger else None,
                besides=[charge for charge in book.own_charges if charge not in terms.charges],
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


def _parts(
    rows: int, score: float | None, bounds: tuple[float, float], metrics: str
) -> tuple[Any, Any, list[str]]:
    """Return the rows to learn from, a tenth to judge by if that was asked for, and what ± to expect of it.

    Which rows these are is public. Both regressors predict inside the bounds, so a score will need no more than is
    checked here.
    """
    if score is None:
        return slice(None), slice(0), []
    if rows < 100:
        raise DataError(f"{rows} rows are too few to hold some out: leave --score out")
    order = np.random.default_rng(0).permutation(rows)
    plan = ScorePlan.of(rows // 10, as_fraction(score), bounds, options.split_names(metrics))
    return np.sort(order[rows // 10 :]), np.sort(order[: rows // 10]), [plan.describe()]


def _judge(
    model: Any, inputs: Inputs, train: Any, test: Any, metrics: str, how: dict[str, Any]
) -> tuple[Risk | None, list[str]]:
    """Return how wrong a model is, and in words: by rows held out if ε is given for that, else by what is free."""
    if how["epsilon"] is None:
        return quality(model, inputs.X[train])
    names = options.split_names(metrics)
    risk = private_score(model, inputs.X[test], inputs.labels[test], metrics=names, **how)
    return risk, [f"Measured on rows held out, for {risk.cost} more: {risk.summary()}"]


def report_sections(label: str, inputs: Inputs, expected: list[str], risk: Risk | None) -> list[Section]:
    """Return what a report says of a fit beyond its card; all of it is public, or paid for."""
    kinds = [[column.name, column.kind, str(column.width)] for column in inputs.encoder.columns]
    left = [[name, f"left out: {why}", "0"] for name, why in inputs.encoder.left_out]
    return [
        Section(
            "How good the model should be",
            [line.strip() for text in expected for line in text.splitlines()],
            header=["figure", "estimate"],
            rows=[] if risk is None else risk.table(),
        ),
        Section(
            "The public columns",
            [f"The model predicts {label!r} from these columns, encoded without looking at any label."],
            header=["column", "what it is", "numbers it becomes"],
            rows=[*kinds, *left],
        ),
    ]


def quality(model: Any, X: NDArray[np.float64]) -> tuple[Risk | None, list[str]]:
    """Return how good a model should be, by what left the room already, and in words; None if that does not tell.

    A model's own idea of its error rests on an assumed shape of what it could not see, and came out too good on
    real tables. So nothing is said where there is only that.
    """
    if isinstance(model, LabelReleaseRegressor):
        try:
            risk = private_risk(model, X, model.release_)
        except NotUnbiasedError:
            pass
        else:
            limit = number(risk.rmse_limit, 3)
            return risk, [
                f"How good it should be, at no further cost: a typical error of ±{limit} or less.",
                f"  {risk.summary()}",
            ]
    enough = max(0.2, math.ceil(10_000 / len(X)) / 10)  # a tenth of the rows, and noise below a typical error
    says = "How good it is was not measured"
    if enough > 20:
        return None, [f"{says}: {len(X):,} rows are too few for --score."]
    return None, [f"{says}: --score {enough:g} would, on rows held out, for ε = {enough:g} more."]
