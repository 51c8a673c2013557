"""`fit_file`: a table with a private label column in, a private model in a folder out."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labeldp._atomic import StrPath
from labeldp._values import Data, Epsilon, LabelBounds, parse_choice
from labeldp.accounts.budget import declared, total_of
from labeldp.accounts.ledger import Ledger
from labeldp.accounts.terms import Terms
from labeldp.app.inputs import Inputs, read_inputs
from labeldp.app.reports import Problems, report_writer
from labeldp.errors import Message, Setting, WeakModelWarning
from labeldp.learning.fit_plan import LabelScale
from labeldp.learning.label_regressor import LabelReleaseRegressor
from labeldp.learning.model_regressor import ModelReleaseRegressor
from labeldp.learning.quality import Risk, terms_with_score
from labeldp.learning.score import NOT_SCORED, fit_and_score, plan_test
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
    source: StrPath,
    out: StrPath,
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
    transform: str | None = None,
    score: float | None = None,
    format: str | None = None,
    dialect: Dialect | None = None,
    report: StrPath | None = None,
    force: bool = False,
    progress: Progress | None = None,
    say: Callable[[list[str]], None] | None = None,
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
    transform : {None, "log", "sqrt"}
        Learn this function of the label, as the regressors do.
    score : float, optional
        ε more, to measure the error on a tenth of the rows, held out.
    report : path, optional
        Where to write a report.
    progress : callable, optional
        As in `labeldp.privatize_file`; what it raises before the charge stops the fit, and nothing is spent.
    say : callable, optional
        Called before the charge with what ``notes`` will be: all of it is public.

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
    LabelScale.parse(bounds, transform)
    parse_choice(release, "release", ("model", "labels"))
    score = None if score is None else Epsilon(score, "score")
    out, problems = Path(out), Problems()
    progress = progress or (lambda *_: None)
    refuse_same({"the model": out, "the ledger": ledger.path, "the report": report}, {"the table": source})
    from labeldp.learning.models import columns_text, reserve_model, write_model  # noqa: PLC0415
    from labeldp.tables.writer import refuse_size  # noqa: PLC0415

    regressor: Any = LabelReleaseRegressor if release == "labels" else ModelReleaseRegressor
    shared = {"transform": transform, "rows_per_person": rows_per_person, "ledger": ledger}
    model = regressor(epsilon=epsilon, bounds=bounds, **shared)
    page = report_writer(report, problems, ledger=ledger, force=force, like=out / "card.json")
    with page as write, reserve_model(out, force=force) as open_draft:
        with open_draft() as draft:
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
            rows, names = len(inputs.labels), ", ".join(inputs.encoder.names)
            notes = [f"The model predicts {label} from {names or 'no column'}.", *inputs.notes]
            notes.append(no_score(rows) if score is None else plan_test(rows, score, bounds).describe())
            if say is not None:
                say(notes)
            refuse_size(f"{out}/", 80 * rows if release == "labels" else 0)
            progress("Fitting", 0, None)
            with (
                warnings.catch_warnings(),
                declared(purpose=purpose, recipient=recipient, bounds_reason=bounds_reason),
            ):
                warnings.simplefilter("ignore", WeakModelWarning)  # it is said below
                risk = _fit(model, inputs, score, problems)
            summary, expected, note = _describe_fit(model, risk)
            card = write_model(model, inputs.encoder, draft, label=label, note=note, quality=risk)
        write(card)
    return FileFit(out, card, summary, expected, notes, problems)


def _fit(model: Any, inputs: Inputs, score: float | None, problems: Problems) -> Risk | None:
    """Fit a model, and return its score if one was asked for; if only the score fails, the model stays."""
    if score is None:
        model.fit(inputs.X, inputs.labels)
        return None
    try:
        return fit_and_score(model, inputs.X, inputs.labels, epsilon=score)[1]
    except Exception as error:
        if NOT_SCORED not in getattr(error, "__notes__", ()):
            raise
        problems["How good the model is could not be measured"] = error
        return None


def _describe_fit(model: Any, risk: Risk | None) -> tuple[str, list[str], str | None]:
    """Return the summary of a fit, sentences on how good it should be, and a note on the cost of its score."""
    about: Data = {"model": type(model).__name__}
    terms, expected, note = model.terms_, list[str](), None
    if risk is not None:
        terms, about["quality"] = terms_with_score(terms, risk), risk.as_data()
        note = score_note(terms, risk)
        expected = [f"Measured on rows held out, for {risk.cost} more: {risk.summary()}", note]
    if model.weakness_ is not None:
        expected.insert(0, f"Note: {model.weakness_}.")
    return terms.summary("model", **about), expected, note


def score_note(terms: Terms, risk: Risk) -> str:
    """Return what a score costs beside its model: for the screen, the card and the report, in the same words."""
    both = total_of(terms.charges)
    says = f"The score on {risk.rows:,} rows held out costs {risk.cost} on top of the model: {both} in all."
    if terms.rows_per_person > 1:
        return says + " A person may have rows on both sides, so both count."
    return says + (
        " No row was both learnt from and held out, so whoever has one row is exposed to the larger of the two; "
        "the ledger counts the sum, which holds for everyone."
    )


def no_score(rows: int) -> str:
    """Return what a score would cost, where none is asked for.

    Examples
    --------
    >>> no_score(4000)
    'The error is not measured: a score on a tenth of the rows, held out, costs ε = 0.3 for those; add score=0.3.'
    """
    enough = max(0.2, math.ceil(10_000 / rows) / 10)  # a tenth of the rows, and noise below a typical error
    if enough > 20:
        return Message(f"The error is not measured: {rows:,} rows are too few for ", Setting("score"), ".")
    cost = f"a score on a tenth of the rows, held out, costs ε = {enough:g} for those"
    return Message(f"The error is not measured: {cost}; add ", Setting("score", enough), ".")
