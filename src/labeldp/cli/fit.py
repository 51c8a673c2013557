"""``labeldp fit``: a private model from a table, in a folder that is safe to open."""

from __future__ import annotations

import math
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Console

from labeldp._checks import as_delta, as_epsilon, as_roomy_bounds
from labeldp.cli.compare_plot import need_matplotlib
from labeldp.cli.inputs import Inputs, read_inputs
from labeldp.cli.options import (
    Bounds,
    Delta,
    Epsilon,
    Force,
    Format,
    Label,
    LedgerFile,
    Limit,
    LimitDelta,
    Missing,
    Policy,
    Report,
    RowsPerPerson,
    Source,
    asked_ledger,
    listed,
    refuse_lone_limit,
)
from labeldp.cli.shell import explained, news, tell
from labeldp.errors import DataError, NotUnbiasedError, ParameterError
from labeldp.estimators import LabelReleaseRegressor, ModelReleaseRegressor, private_risk, private_score
from labeldp.estimators.learner import Blend
from labeldp.files.drafts import refuse_target
from labeldp.ledger import Budget, Ledger, new_charge, refuse_overspend
from labeldp.model_file import model_folder, save_model
from labeldp.report import Section, write_report

__all__ = ["fit"]

EXAMPLE = "Example:  labeldp fit homes.parquet --label price --bounds 0 5 --epsilon 1 -o model"


class Leaves(StrEnum):
    """What may leave the safe room."""

    model = "model"
    labels = "labels"


def fit(
    source: Source,
    label: Label,
    bounds: Bounds,
    epsilon: Epsilon,
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder for the model.", show_default=False)],
    release: Annotated[
        Leaves,
        typer.Option(help="What leaves: the model alone, which mostly predicts better, or private labels too."),
    ] = Leaves.model,
    features: Annotated[
        str | None, typer.Option(help="Columns to learn from, such as a,b,c; all by default.", show_default=False)
    ] = None,
    drop: Annotated[
        str | None, typer.Option(help="Columns to leave out, such as id,name.", show_default=False)
    ] = None,
    categories: Annotated[
        str | None,
        typer.Option(help="Columns of numbers that name things, such as zip,region.", show_default=False),
    ] = None,
    missing: Missing = Policy.error,
    delta: Delta = 0.0,
    ledger: LedgerFile = None,
    limit: Limit = None,
    limit_delta: LimitDelta = 0.0,
    rows_per_person: RowsPerPerson = 1,
    score: Annotated[
        float | None,
        typer.Option(help="ε more, to measure the error on a tenth of the rows, held out.", show_default=False),
    ] = None,
    format: Format = None,
    report: Report = None,
    force: Force = False,
) -> None:
    """Learn to predict a private column, and save a model that keeps ε for every label.

    All other columns are public features: numbers, booleans, dates and text,
    and a missing value is no obstacle. The budget is charged after everything
    that can be checked without labels.
    """
    with explained("Stopped. A model that is there is whole; the ledger, if there is one, says what was paid."):
        as_epsilon(epsilon)
        as_roomy_bounds(bounds)
        as_delta(delta, smallest=0.0)
        if delta and release is Leaves.labels:
            raise ParameterError("--delta goes with --release model: labels are randomised with pure ε")
        refuse_lone_limit(ledger, limit, limit_delta)
        price = Budget(epsilon, delta) + Budget(0 if score is None else as_epsilon(score))
        if ledger is not None and ledger.exists():
            _refuse_unaffordable(asked_ledger(ledger, limit, limit_delta), price, rows_per_person)
        if report is not None:
            need_matplotlib()
            refuse_target(str(report), force=force)

        screen = news()
        with model_folder(out, force=force) as draft:
            inputs = read_inputs(
                source,
                label,
                features=listed(features),
                drop=listed(drop),
                categories=listed(categories),
                missing=missing,
                format=format,
            )
            for note in inputs.notes:
                tell(screen, note)
            train, test = _parts(len(inputs.labels), held_out=score is not None)
            book = asked_ledger(ledger, limit, limit_delta)
            _refuse_unaffordable(book, price, rows_per_person)
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
            model.fit(inputs.X[train], inputs.labels[train])
            card = save_model(model, inputs.encoder, draft, label=label)
        shown = Console()
        tell(shown, model.summary())
        expected = quality(model, inputs.X[train])
        if score is not None:
            risk = private_score(
                model,
                inputs.X[test],
                inputs.labels[test],
                epsilon=score,
                bounds=bounds,
                ledger=book,
                rows_per_person=rows_per_person,
            )
            expected = [f"Measured on rows held out, for ε = {score:g} more: {risk.summary()}"]
        for line in expected:
            tell(shown, line)
        tell(shown, f"The model is in {out}:  labeldp predict {out} TABLE -o OUT")
        if release is Leaves.labels:
            tell(shown, f"The private labels are in {out / 'release.npz'} too; both may be made public.")
        if report is not None:
            parts = report_sections(label, inputs, expected)
            write_report(report, card, ledger=model.ledger_ if ledger else None, extra=parts, force=force)
            tell(shown, f"The report is in {report}.")
        if model.ledger_.limit is not None:
            tell(shown, f"The ledger {ledger} has {model.ledger_.remaining} left.")
        elif ledger is None:
            tell(shown, "No ledger was kept: fitting these labels again costs again, and nobody counts it.")


def _refuse_unaffordable(ledger: Ledger, price: Budget, rows_per_person: int) -> None:
    """Refuse what the ledger would refuse half way, when the model is paid for and its score is not."""
    refuse_overspend(
        ledger.limit, ledger.charges, [new_charge("model and score", price, rows_per_person=rows_per_person)]
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
    """Return how good a model should be, by what was paid for already."""
    inner: Any = model._blend if isinstance(model, LabelReleaseRegressor) else model._model
    if isinstance(model, LabelReleaseRegressor):
        try:
            risk = private_risk(model, X, model.release_)
        except NotUnbiasedError:
            pass
        else:
            return [_typical(risk.mse, inner.knowledge.variance), f"  {risk.summary()}"]
    if isinstance(inner, Blend):
        return [_typical(inner.error, inner.knowledge.variance), "  " + _ESTIMATED]
    return [
        f"How good it should be, at no further cost: features leave about ±{math.sqrt(inner.rest):.3g} open, of "
        f"±{math.sqrt(inner.rest + inner.explained):.3g} in all; what noise and few rows add comes on top, and "
        "was not measured.",
        "  " + _ESTIMATED,
    ]


_ESTIMATED = (
    "This is the model's own estimate and leaves out what clipping hides: expect somewhat more. --score measures "
    "it, for a price."
)


def _typical(error: float, spread: float) -> str:
    """Return a sentence on a mean squared error beside the labels' variance."""
    says = "How good it should be, at no further cost: "
    if error <= 0:
        return says + "the noise hides it."
    return says + f"typical error about ±{math.sqrt(error):.3g}, beside ±{math.sqrt(spread):.3g} for a constant."
