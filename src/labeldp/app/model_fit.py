"""`fit_file`: a table with a private label column in, a private model in a folder out."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labeldp._atomic import StrPath, as_path
from labeldp._values import Array, Data, Epsilon, LabelBounds, parse_choice
from labeldp.accounts.budget import charges_name, declared
from labeldp.accounts.ledger import Ledger
from labeldp.accounts.terms import Terms
from labeldp.app.inputs import Columns, Hints, Rows, read_rows, tally_notes
from labeldp.app.row_columns import RowColumns
from labeldp.errors import ParameterError, Setting, WeakModelWarning
from labeldp.learning.fit_plan import LabelScale
from labeldp.learning.label_regressor import LabelReleaseRegressor
from labeldp.learning.model_regressor import ModelReleaseRegressor
from labeldp.learning.quality import Risk, terms_with_score
from labeldp.learning.score import NOT_SCORED, fit_and_score, plan_test
from labeldp.learning.updates import refuse_other_unit
from labeldp.tables.column_encoders import Tally
from labeldp.tables.feature_encoder import TableEncoder
from labeldp.tables.memory import refuse_too_large
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
        The terms in sentences.
    notes : list of str
        Which columns it learned from, which were left out and why, what else is to be said of the table, and how
        good the model should be.
    score_error : Exception or None
        The failure of the score, if the fit succeeded: the model is in place, and can be used.
    """

    path: Path
    card: str
    summary: str
    notes: list[str]
    score_error: Exception | None


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
    segment: str | None = None,
    segment_by: str | None = None,
    id: str | None = None,
    person: str | None = None,
    most_rows_per_person: int | None = None,
    intended_use: str | None = None,
    recipient: str | None = None,
    bounds_reason: str | None = None,
    label_transform: str | None = None,
    score: float | None = None,
    update: StrPath | None = None,
    keep_rows: bool = False,
    format: str | None = None,
    dialect: Dialect | None = None,
    force: bool = False,
    progress: Progress | None = None,
    hints: Hints | None = None,
) -> FileFit:
    """Learn to predict a private column, and save a model that is ε-differentially private for every label.

    The budget is charged after everything that can be checked without labels.

    Parameters
    ----------
    source : path
        As in `labeldp.privatize_file`, which has most other parameters too.
    out : path
        The folder for the model.
    label, bounds, epsilon, missing, rows_per_person, format, dialect, force
        As in `labeldp.privatize_file`.
    intended_use, recipient, bounds_reason
        As in `labeldp.privatize_file`.
    segment : str, optional
        The segment of all rows; as in `labeldp.privatize`.
    segment_by, id, person : str, optional
        Public columns with the segment, the id and the person of each row.
    most_rows_per_person : int, optional
        As in `labeldp.privatize`.
    ledger : Ledger
        The ledger to charge.
    release : {"model", "labels"}
        The model alone, or private labels too.
    features, drop, categories : sequences of str
        Columns to learn from, all by default; to leave out; and of numbers that name things.
    label_transform : {None, "log", "sqrt"}
        Learn this function of the label, as the regressors do.
    score : float, optional
        ε of a tenth of the rows, held out to measure the error. No more than ``epsilon`` costs nothing beyond it.
    update : path, optional
        The folder of a model that learns on from these rows, instead of a new one; ``out`` may be the same folder.
        Columns, bounds and transform are those of the model.
    keep_rows : bool
        As in `labeldp.save_model`; a model that kept them keeps those of its updates too.
    progress : callable, optional
        As in `labeldp.privatize_file`; its exception before the charge stops the fit, and nothing is spent.
    hints : callable, optional
        As in `labeldp.privatize_file`: **for the owner's eyes only**.

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
    LabelScale.parse(bounds, label_transform)
    given = {"release": release != "model", "score": score, "features": features, "drop": drop}
    for name, value in ({**given, "categories": categories} if update is not None else {}).items():
        if value:
            raise ParameterError(
                Setting(name),
                " is not for ",
                Setting("update"),
                ": leave it out; kind and columns stay those of the model",
            )
    parse_choice(release, "release", ("model", "labels"))
    score = None if score is None else Epsilon(score, "score")
    refuse_same({"the model": out, "the ledger": ledger.path}, {"the table": source})
    regressor: Any = LabelReleaseRegressor if release == "labels" else ModelReleaseRegressor
    how = {"epsilon": epsilon, "rows_per_person": rows_per_person, "ledger": ledger}
    if update is None:
        model = regressor(label_transform=label_transform, bounds=bounds, **how)
    else:
        model = _model_to_update(update, label, bounds, label_transform, how)
        force = force or as_path(out).resolve() == as_path(update).resolve()
        keep_rows = keep_rows or model.measurements.label_rows is not None
    columns = {"features": features, "drop": drop, "categories": categories}
    progress = progress or (lambda *_: None)
    scope = RowColumns(segment, segment_by, id, person, most_rows_per_person)
    reading: Data = {"missing": missing, "format": format, "dialect": dialect, "scope": scope}
    read = partial(
        read_rows, source, label, columns=columns, progress=progress, hints=hints, bounds=bounds, **reading
    )
    statements = {"intended_use": intended_use, "recipient": recipient, "bounds_reason": bounds_reason}
    with declared(**statements), charges_name(label):
        saving = {"force": force, "keep_rows": keep_rows}
        return _fit_and_save(model, Path(out), read, label, columns, score, progress, **saving)


def _model_to_update(
    folder: StrPath, label: str, bounds: tuple[float, float], label_transform: str | None, how: Data
) -> Any:
    """Return a saved model as a regressor that can learn on, or refuse other labels than its own."""
    from labeldp.learning.models import load_model  # noqa: PLC0415

    saved = load_model(folder)
    if label != saved.label:
        raise ParameterError(
            Setting("label", label), " is not that of the model: give ", Setting("label", saved.label)
        )
    refuse_other_unit(saved.terms_, bounds, label_transform)
    return saved.regressor(**how)


def _fit_and_save(
    model: Any,
    out: Path,
    read: Callable[[], Rows],
    label: str,
    columns: Columns,
    score: float | None,
    progress: Progress,
    *,
    force: bool,
    keep_rows: bool,
) -> FileFit:
    """Read a table, fit a model to it, and save the model; only the fit charges the ledger."""
    from labeldp.learning.models import columns_text, reserve_model, write_model  # noqa: PLC0415
    from labeldp.tables.writer import refuse_size  # noqa: PLC0415

    with reserve_model(out, force=force) as open_draft, open_draft() as draft:
        table = read()
        rows = len(table.labels)
        encoder = getattr(model, "encoder_", None) or _fit_encoder(table, columns)
        refuse_too_large(8 * rows * encoder.width)
        X, notes = _encode(encoder, table, label)
        columns_text(encoder, label)  # refuses names and values that a model cannot hold
        if score is not None:
            notes.append(plan_test(rows, score, model.bounds).describe())
        refuse_size(f"{out}/", 80 * rows if isinstance(model, LabelReleaseRegressor) else 0)
        progress("Fitting", 0, None)
        if hasattr(model, "terms_"):
            risk, error = None, None
            model.update(table.public, table.labels, **table.scope)
        else:
            risk, error = _fit(model, X, table, score)
        summary, note = _summarize(model, risk)
        notes += _result_notes(model, risk, note)
        card = write_model(
            model, encoder, draft, label=label, note=note or None, quality=risk, keep_rows=keep_rows
        )
    return FileFit(out, card, summary, notes, error)


def _fit_encoder(table: Rows, columns: Columns) -> TableEncoder:
    """Learn how the public columns of a table become numbers."""
    strict, categories = bool(columns["features"]), columns["categories"]
    return TableEncoder.fit(table.public, table.public.column_names, categories=categories, strict=strict)


def _encode(encoder: TableEncoder, read: Rows, label: str) -> tuple[Array, list[str]]:
    """Return features as numbers, and notes on the columns."""
    tally: Tally = Counter()
    X = encoder.transform(read.public, tally)
    notes = [f"The model predicts {label} from {', '.join(encoder.names) or 'no column'}.", *read.notes]
    notes += [f"{name} was left out: {reason}." for name, reason in encoder.left_out]
    return X, notes + tally_notes(tally)


def _result_notes(model: Any, risk: Risk | None, note: str) -> list[str]:
    """Return notes on the weakness of a model, and on its score."""
    notes = [] if model.weakness_ is None else [f"Note: {model.weakness_}."]
    if risk is not None:
        notes += [f"Measured on rows held out: {risk.summary()}", note]
    return notes


def _summarize(model: Any, risk: Risk | None) -> tuple[str, str]:
    """Return the summary of a fit, and the note on the cost of its score, empty without one."""
    name = type(model).__name__
    if risk is None:
        return model.terms_.summary("model", model=name), ""
    terms = terms_with_score(model.terms_, risk)
    return terms.summary("model", model=name, quality=risk.as_data()), score_note(terms, risk)


def _fit(model: Any, X: Array, table: Rows, score: float | None) -> tuple[Risk | None, Exception | None]:
    """Fit a model, and return its score or the error of its score; an error of the fit is raised."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", WeakModelWarning)  # it is among the notes
        if score is None:
            model.fit(X, table.labels, **table.scope)
            return None, None
        try:
            return fit_and_score(model, X, table.labels, epsilon=score, **table.scope)[1], None
        except Exception as error:
            if NOT_SCORED not in getattr(error, "__notes__", ()):
                raise
            return None, error


def score_note(terms: Terms, risk: Risk) -> str:
    """Return the cost of a score beside its model: for the screen, the card and the report, in the same words."""
    extra = "nothing" if risk.charge is None else str(risk.charge.budget)
    return (
        f"The score on {risk.rows:,} rows held out costs {risk.cost} for these rows, which the model did not use: "
        f"{extra} beyond the model, {terms.cost} in all."
    )
