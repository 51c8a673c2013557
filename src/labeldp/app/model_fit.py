"""`fit_file`: a table with a private label column in, a private model in a folder out."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Unpack

from labeldp._atomic import StrPath, as_path
from labeldp._values import Array, Data, Epsilon, Interval, LabelBounds, parse_choice
from labeldp.accounts.budget import charges_name
from labeldp.accounts.ledger import Ledger
from labeldp.app.file_job import FileJob, FileOptions
from labeldp.app.inputs import Columns, Rows, encode_rows, fit_encoder, read_rows, weakness_notes
from labeldp.errors import ParameterError, Setting, WeakModelWarning
from labeldp.learning.fit_plan import LabelScale
from labeldp.learning.label_regressor import LabelReleaseRegressor
from labeldp.learning.model_regressor import ModelReleaseRegressor
from labeldp.learning.models import SavedModel, columns_text, load_model, reserve_model, write_model
from labeldp.learning.quality import Risk, terms_with_score
from labeldp.learning.score import NOT_SCORED, fit_and_score, plan_test
from labeldp.learning.updates import refuse_other_unit
from labeldp.tables.feature_encoder import TableEncoder
from labeldp.tables.memory import refuse_too_large
from labeldp.tables.writer import refuse_size

_REGRESSORS: dict[str, Any] = {"model": ModelReleaseRegressor, "labels": LabelReleaseRegressor}

LABEL_BYTES = 80
"""Space on disk for a row of a model with private labels, about."""


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
    bounds: Interval,
    epsilon: float,
    ledger: Ledger,
    release: str = "model",
    features: Sequence[str] = (),
    drop: Sequence[str] = (),
    categories: Sequence[str] = (),
    label_transform: str | None = None,
    score: float | None = None,
    update: StrPath | None = None,
    keep_rows: bool = False,
    **options: Unpack[FileOptions],
) -> FileFit:
    """Learn to predict a private column, and save a model that is ε-differentially private for every label.

    The budget is charged after everything that can be checked without labels.

    Parameters
    ----------
    source : path
        As in `labeldp.privatize_file`.
    out : path
        The folder for the model.
    label, bounds, epsilon
        As in `labeldp.privatize_file`.
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
    **options
        As in `labeldp.privatize_file`: ``missing``, ``rows_per_person``, ``segment``, ``segment_by``, ``id``,
        ``person``, ``most_rows_per_person``, ``intended_use``, ``recipient``, ``bounds_reason``, ``format``,
        ``dialect``, ``force``, ``progress`` and ``hints``.

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
    job = FileJob(source=source, labels=(label,), ledger=ledger, **options)
    job.refuse_same({"the model": out})
    score = None if score is None else Epsilon(score, "score")
    parse_choice(release, "release", list(_REGRESSORS))
    columns = Columns(features, drop, categories)
    LabelScale.parse(LabelBounds(bounds), label_transform)
    scale: Data = {"bounds": bounds, "label_transform": label_transform}
    request = job.budget(Epsilon(epsilon))
    if update is None:
        model = _REGRESSORS[release](**scale, **request)
        return _fit_and_save(model, job, columns, out, score=score, keep_rows=keep_rows)
    _refuse_for_update(release=release != "model", score=score, **asdict(columns))
    saved = _load_for_update(update, label, **scale)
    if as_path(out).resolve() == as_path(update).resolve():
        job = replace(job, force=True)
    keep_rows = keep_rows or saved.measurements().label_rows is not None
    return _fit_and_save(saved.regressor(**request), job, columns, out, keep_rows=keep_rows)


def _refuse_for_update(**options: Any) -> None:
    """Refuse options that a model which learns on has already."""
    for name, value in options.items():
        if value:
            raise ParameterError(
                Setting(name),
                " is not for ",
                Setting("update"),
                ": leave it out; kind and columns stay those of the model",
            )


def _load_for_update(folder: StrPath, label: str, bounds: Interval, label_transform: str | None) -> SavedModel:
    """Return a saved model that shall learn on, or refuse other labels than its own."""
    saved = load_model(folder)
    if label != saved.label:
        raise ParameterError(
            Setting("label", label), " is not that of the model: give ", Setting("label", saved.label)
        )
    refuse_other_unit(saved.terms_, bounds, label_transform)
    return saved


def _fit_and_save(
    model: Any, job: FileJob, columns: Columns, out: StrPath, *, score: float | None = None, keep_rows: bool
) -> FileFit:
    """Read a table, fit a model to it, and save the model; only the fit charges the ledger."""
    (label,) = job.labels
    with (
        job.declared(),
        charges_name(label),
        reserve_model(out, force=job.force) as open_draft,
        open_draft() as draft,
    ):
        rows = read_rows(job, columns, bounds=model.bounds)
        job.warn_of_charged(rows.public.column_names)
        encoder = getattr(model, "encoder_", None) or fit_encoder(rows.public, columns)
        X, notes = _encode_for_model(encoder, rows, label)
        if score is not None:
            notes.append(plan_test(len(X), score, model.bounds).describe())
        refuse_size(f"{out}/", LABEL_BYTES * len(X) if isinstance(model, LabelReleaseRegressor) else 0)
        job.report("Fitting")
        risk, error = _fit(model, X, rows, score)
        summary, *score_notes = _summarize(model, risk)
        notes += [*weakness_notes(model), *score_notes]
        cost = score_notes[-1] if score_notes else None
        card = write_model(model, encoder, draft, label=label, note=cost, quality=risk, keep_rows=keep_rows)
    return FileFit(Path(out), card, summary, notes, error)


def _encode_for_model(encoder: TableEncoder, rows: Rows, label: str) -> tuple[Array, list[str]]:
    """Return features as numbers, and notes; refuse more than memory or a saved model can hold."""
    refuse_too_large(8 * len(rows.labels) * encoder.width)
    X, notes = encode_rows(encoder, rows, label)
    columns_text(encoder, label)
    return X, notes


def _fit(model: Any, X: Array, rows: Rows, score: float | None) -> tuple[Risk | None, Exception | None]:
    """Fit a model, and return its score or the error of its score; an error of the fit is raised."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", WeakModelWarning)  # it is among the notes
        try:
            if hasattr(model, "terms_"):
                model.update(rows.public, rows.labels, **rows.scope)
            elif score is None:
                model.fit(X, rows.labels, **rows.scope)
            else:
                return fit_and_score(model, X, rows.labels, epsilon=score, **rows.scope)[1], None
        except Exception as error:
            if NOT_SCORED not in getattr(error, "__notes__", ()):
                raise
            return None, error
    return None, None


def _summarize(model: Any, risk: Risk | None) -> list[str]:
    """Return the summary of a fit, and, if it has a score, notes on that and on its cost."""
    name = type(model).__name__
    if risk is None:
        return [model.terms_.summary("model", model=name)]
    terms = terms_with_score(model.terms_, risk)
    extra = "nothing" if risk.charge is None else str(risk.charge.budget)
    cost = (
        f"The score on {risk.rows:,} rows held out costs {risk.cost} for these rows, which the model did not use: "
        f"{extra} beyond the model, {terms.cost} in all."
    )
    summary = terms.summary("model", model=name, quality=risk.as_data())
    return [summary, f"Measured on rows held out: {risk.summary()}", cost]
