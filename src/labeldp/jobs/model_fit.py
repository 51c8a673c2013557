"""`fit_file`: a table with a private label column in, a private model in a folder out."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from labeldp._values import Delta, Epsilon, LabelBounds, as_fraction
from labeldp.errors import DataError, NotUnbiasedError, ParameterError
from labeldp.estimators import LabelReleaseRegressor, ModelReleaseRegressor, Risk, private_risk, private_score
from labeldp.estimators.quality import terms_with_score
from labeldp.estimators.score_sums import ScorePlan
from labeldp.files.places import refuse_same
from labeldp.jobs.inputs import Inputs, read_inputs
from labeldp.jobs.reports import Problems, note_problem, reserve_report, try_report
from labeldp.ledger import Budget, Charge, Ledger, new_charge, refuse_overspend, total_of
from labeldp.release.numbers import number
from labeldp.report import Section

if TYPE_CHECKING:
    from labeldp.files import Dialect
    from labeldp.files.door import Progress


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FileFit:
    """A model that was fitted to a table and saved.

    Attributes
    ----------
    path : Path
        Its folder.
    card : str
        The card's text; public.
    summary : str
        What was done, in words.
    expected : list of str
        How good it should be, in words.
    notes : list of str
        Which columns it learned from, which were left out and why, and what else is to be said of the table.
    problems : dict
        What went wrong once the model was in place, by what could not be done.
    """

    path: Path
    card: str
    summary: str
    expected: list[str]
    notes: list[str]
    problems: Problems = field(default_factory=dict)


def fit_file(
    source: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    label: str,
    bounds: tuple[float, float],
    epsilon: float,
    ledger: Ledger,
    release: str = "model",
    features: Sequence[str] = (),
    drop: Sequence[str] = (),
    categories: Sequence[str] = (),
    missing: str = "error",
    delta: float = 0.0,
    rows_per_person: int = 1,
    score: float | None = None,
    metrics: Sequence[str] = ("rmse",),
    format: str | None = None,
    dialect: Dialect | None = None,
    report: str | os.PathLike[str] | None = None,
    force: bool = False,
    verbose: bool = False,
    say: Callable[[str], None] = lambda text: None,
    left_out: Callable[[list[str]], None] = lambda columns: None,
    while_reading: AbstractContextManager[Progress | None] | None = None,
) -> FileFit:
    """Learn to predict a private column, and save a model that keeps ε for every label.

    The budget is charged after everything that can be checked without labels.

    Parameters
    ----------
    source : path
        As in `labeldp.files.privatize_file`, which has most other parameters too.
    out : path
        The folder for the model.
    release : {"model", "labels"}
        What leaves: the model alone, or private labels too.
    features, drop, categories : sequences of str
        Columns to learn from, all by default; to leave out; and of numbers that name things.
    score : float, optional
        ε more, to measure the error on a tenth of the rows, held out.
    metrics : sequence of str
        What the score measures.
    report : path, optional
        Where to write a report.
    verbose : bool
        Whether the fit draws its progress on the terminal.
    say : callable
        Called with what was found out about the table, before the charge; all of it is public.
    left_out : callable
        Called before the charge with the columns that the model will not learn from, and why; what it raises stops
        the fit, and nothing is spent.
    while_reading : context manager, optional
        Entered while the table is read, and gives what is called meanwhile with how far that is, as in
        `labeldp.files.privatize_file`; what either raises stops the fit, and nothing is spent.
    """
    Epsilon(epsilon)
    LabelBounds(bounds)
    Delta(delta)
    if delta and release == "labels":
        raise ParameterError('delta goes with release="model": labels are randomised with pure ε')
    out = Path(out)
    refuse_same({"the model": out, "the ledger": ledger.path, "the report": report}, {"the table": source})
    from labeldp.files.models import (  # noqa: PLC0415 (an extra)
        add_to_card,
        columns_text,
        reserve_model,
        write_model,
    )
    from labeldp.files.rehearsal import refuse_size  # noqa: PLC0415

    later = _score_charges(score, rows_per_person)
    refuse_overspend(
        ledger.limit,
        ledger.charges,
        [new_charge("model", Budget(epsilon), purpose="other", rows_per_person=rows_per_person), *later],
    )
    risk: Risk | None = None
    expected: list[str] = []
    problems: Problems = {}
    with reserve_report(report, force=force), reserve_model(out, force=force) as open_draft:
        with open_draft() as draft:
            with while_reading or nullcontext() as progress:
                inputs = read_inputs(
                    str(source),
                    label,
                    features=features,
                    drop=drop,
                    categories=categories,
                    missing=missing,
                    format=format,
                    dialect=dialect,
                    progress=progress,
                )
            columns_text(inputs.encoder, label)  # refuses what a model cannot hold
            train, test, notes = _parts(len(inputs.labels), score, bounds, metrics)
            for message in [*inputs.notes, *notes]:
                say(message)
            left_out(inputs.left_out)
            refuse_size(f"{out}/", 80 * len(inputs.labels) if release == "labels" else 0)
            shared: dict[str, Any] = {
                "epsilon": epsilon,
                "bounds": bounds,
                "rows_per_person": rows_per_person,
                "ledger": ledger,
                "verbose": verbose,
            }
            model: Any
            if release == "model":
                model = ModelReleaseRegressor(**shared, delta=delta)
            else:
                model = LabelReleaseRegressor(**shared)
            with ledger.reserve(later):
                model.fit(inputs.X[train], inputs.labels[train])
            note = score_note(model.charges_, later, len(inputs.labels[test])) if later else None
            card = write_model(model, inputs.encoder, draft, label=label, note=note)
        terms = model.terms_
        with note_problem(problems, "How good the model is could not be measured"):
            how = {"epsilon": score, "bounds": bounds, "ledger": ledger, "rows_per_person": rows_per_person}
            risk, expected = _judge(model, inputs, train, test, metrics, how)
            expected += [note] if note else []
            if risk is not None:
                scored = terms_with_score(terms, risk)
                card, terms = add_to_card(out, card, scored, quality=risk.as_data()), scored
        try_report(
            report,
            card,
            problems,
            ledger=ledger,
            besides=[charge for charge in ledger.own_charges if charge not in terms.charges],
            sections=report_sections(label, inputs, expected, risk),
            force=force,
        )
    names = ", ".join(inputs.encoder.names) or "no column"
    notes = [f"The model predicts {label} from {names}.", *inputs.notes]
    score_data = {} if risk is None else {"quality": risk.as_data()}
    summary = terms.summary("model", model=type(model).__name__, **score_data)
    return FileFit(out, card, summary, expected, notes, problems)


def _score_charges(score: float | None, rows_per_person: int) -> list[Charge]:
    """Return what a score will cost, if one was asked for."""
    if score is None:
        return []
    return [new_charge("score", Budget(Epsilon(score)), purpose="score", rows_per_person=rows_per_person)]


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


def rows_held_out(rows: int, score: float | None) -> int:
    """Return how many rows a model does not learn from: a tenth, if a score was asked for."""
    return 0 if score is None else rows // 10


def _parts(
    rows: int, score: float | None, bounds: tuple[float, float], metrics: Sequence[str]
) -> tuple[Any, Any, list[str]]:
    """Return the rows to learn from, a tenth to judge by if that was asked for, and what ± to expect of it.

    Which rows these are is public. Both regressors predict inside the bounds, so a score will need no more than is
    checked here.
    """
    if score is None:
        return slice(None), slice(0), []
    if rows < 100:
        raise DataError(f"{rows} rows are too few to hold some out: leave --score out")
    order, count = np.random.default_rng(0).permutation(rows), rows_held_out(rows, score)
    plan = ScorePlan.of(count, as_fraction(score), bounds, list(metrics))
    return np.sort(order[count:]), np.sort(order[:count]), [plan.describe()]


def _judge(
    model: Any, inputs: Inputs, train: Any, test: Any, metrics: Sequence[str], how: dict[str, Any]
) -> tuple[Risk | None, list[str]]:
    """Return how wrong a model is, and in words: by rows held out if ε is given for that, else by what is free."""
    if how["epsilon"] is None:
        return quality(model, inputs.X[train])
    risk = private_score(model, inputs.X[test], inputs.labels[test], metrics=list(metrics), **how)
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
