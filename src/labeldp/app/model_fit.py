"""`fit_file`: a table with a private label column in, a private model in a folder out."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labeldp._values import Epsilon, LabelBounds, parse_choice
from labeldp.accounts.budget import Budget, Charge, declared, new_charge, refuse_overspend, total_of
from labeldp.accounts.ledger import Ledger
from labeldp.accounts.scores import DEFAULT_METRICS
from labeldp.app.inputs import Inputs, read_inputs
from labeldp.app.report.page import Section
from labeldp.app.reports import Problems, reserve_report, try_report
from labeldp.errors import Message, Setting
from labeldp.learning.label_regressor import LabelReleaseRegressor
from labeldp.learning.model_regressor import ModelReleaseRegressor
from labeldp.learning.quality import Risk, terms_with_score
from labeldp.learning.score import NOT_SCORED, TEST_SIZE, fit_and_score, plan_test
from labeldp.tables.paths import refuse_same

if TYPE_CHECKING:
    from labeldp.tables.dialect import Dialect
    from labeldp.tables.opening import Progress


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
    rows_per_person: int = 1,
    purpose: str | None = None,
    recipient: str | None = None,
    bounds_reason: str | None = None,
    score: float | None = None,
    metrics: Sequence[str] = DEFAULT_METRICS,
    format: str | None = None,
    dialect: Dialect | None = None,
    report: str | os.PathLike[str] | None = None,
    force: bool = False,
    verbose: bool = False,
    say: Callable[[str], None] = lambda text: None,
    left_out: Callable[[list[str]], None] = lambda columns: None,
    while_reading: AbstractContextManager[Progress | None] | None = None,
) -> FileFit:
    """Learn to predict a private column, and save a model that is ε-differentially private for every label.

    The budget is charged after everything that can be checked without labels.

    Parameters
    ----------
    source : path
        As in `labeldp.privatize_file`, which has most other parameters too.
    out : path
        The folder for the model.
    label, bounds, epsilon, missing, rows_per_person, purpose, recipient, bounds_reason, format, dialect, force
        As in `labeldp.privatize_file`.
    ledger : Ledger
        What is charged.
    release : {"model", "labels"}
        What is released: the model alone, or private labels too.
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
        `labeldp.privatize_file`; what either raises stops the fit, and nothing is spent.

    Examples
    --------
    >>> import tempfile, pandas as pd, labeldp as ldp
    >>> from labeldp.evidence import make_survey
    >>> folder, survey = tempfile.mkdtemp(), make_survey(rows=1000)
    >>> frame = pd.DataFrame(survey.features, columns=survey.feature_names).assign(income=survey.income)
    >>> frame.to_csv(f"{folder}/survey.csv", index=False)
    >>> ledger = ldp.Ledger(limit=ldp.Budget(epsilon=3.0))
    >>> bounds = (0, 200_000)
    >>> done = ldp.fit_file(
    ...     f"{folder}/survey.csv", f"{folder}/model", label="income", bounds=bounds, epsilon=1.0, ledger=ledger
    ... )
    >>> ldp.load_model(done.path).predict(frame.drop(columns="income")).shape
    (1000,)
    """
    epsilon, bounds = Epsilon(epsilon), LabelBounds(bounds)
    parse_choice(release, "release", ("model", "labels"))
    parse_choice(missing, "missing", ("error", "drop"))
    out, later = Path(out), list[Charge]()
    refuse_same({"the model": out, "the ledger": ledger.path, "the report": report}, {"the table": source})
    from labeldp.learning.models import (  # noqa: PLC0415
        add_to_card,
        columns_text,
        reserve_model,
        write_model,
    )
    from labeldp.tables.rehearsal import refuse_size  # noqa: PLC0415

    if score is not None:
        price = Budget(Epsilon(score, "score"))
        later.append(new_charge("score", price, purpose="score", rows_per_person=rows_per_person))
    price = Budget(epsilon)
    first = new_charge("model", price, purpose="other", rows_per_person=rows_per_person)
    refuse_overspend(ledger.limit, ledger.charges, [first, *later])
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
            rows = len(inputs.labels)
            for text in inputs.notes:
                say(text)
            if score is not None:
                say(plan_test(rows, score, bounds, metrics).describe())
            left_out(inputs.left_out)
            refuse_size(f"{out}/", 80 * rows if release == "labels" else 0)
            regressor: Any = LabelReleaseRegressor if release == "labels" else ModelReleaseRegressor
            model = regressor(
                epsilon=epsilon, bounds=bounds, rows_per_person=rows_per_person, ledger=ledger, verbose=verbose
            )
            with declared(purpose=purpose, recipient=recipient, bounds_reason=bounds_reason):
                risk = _fit(model, inputs, score, metrics, problems)
            note, expected = None, [not_scored(rows)] if score is None else []
            if risk is not None:
                note = score_note(model.charges_, later, risk.rows)
                expected = [f"Measured on rows held out, for {risk.cost} more: {risk.summary()}", note]
            card, terms = write_model(model, inputs.encoder, draft, label=label, note=note), model.terms_
            about: dict[str, Any] = {"model": type(model).__name__}
            if risk is not None:
                terms, about["quality"] = terms_with_score(terms, risk), risk.as_data()
                card = add_to_card(draft, card, terms, quality=about["quality"])
        sections = report_sections(label, inputs, expected, risk)
        try_report(report, card, problems, ledger=ledger, sections=sections, force=force)
    names = ", ".join(inputs.encoder.names) or "no column"
    notes = [f"The model predicts {label} from {names}.", *inputs.notes]
    return FileFit(out, card, terms.summary("model", **about), expected, notes, problems)


def _fit(
    model: Any, inputs: Inputs, score: float | None, metrics: Sequence[str], problems: Problems
) -> Risk | None:
    """Fit a model, and return its score if one was asked for; if only the score fails, the model stays."""
    if score is None:
        model.fit(inputs.X, inputs.labels)
        return None
    try:
        return fit_and_score(model, inputs.X, inputs.labels, epsilon=score, metrics=metrics)[1]
    except Exception as error:
        if NOT_SCORED not in getattr(error, "__notes__", ()):
            raise
        problems["How good the model is could not be measured"] = error
        return None


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
    return 0 if score is None else int(rows * TEST_SIZE)


def not_scored(rows: int) -> str:
    """Return what a score would cost, where none was asked for.

    Examples
    --------
    >>> not_scored(4000)
    'Its error was not measured. A score ..., held out, would cost ε = 0.3 for those rows: add score=0.3.'
    """
    enough = max(0.2, math.ceil(10_000 / rows) / 10)  # a tenth of the rows, and noise below a typical error
    if enough > 20:
        return Message(f"Its error was not measured: {rows:,} rows are too few for ", Setting("score"), ".")
    cost = f"A score on a tenth of the rows, held out, would cost ε = {enough:g} for those rows"
    return Message(f"Its error was not measured. {cost}: add ", Setting("score", enough), ".")


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
