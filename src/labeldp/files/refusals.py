"""What is refused before anything is spent, because the output would be wrong or give labels away."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from labeldp.errors import NotUnbiasedError, ParameterError
from labeldp.files.sources import PIPE, Part, partition_keys
from labeldp.histogram import Histogram
from labeldp.stream import Order

__all__ = ["refuse_biased", "refuse_label_folders", "refuse_overlap", "refuse_same"]


def refuse_biased(order: Order) -> None:
    """Refuse a mechanism that has no unbiased labels, by a trial that needs no data."""
    if order.mechanism == "auto":  # it chooses among those that have some
        return
    plan = order.plan(1000)
    try:
        flat = Histogram(order.bounds, [1.0]) if plan.for_prior else None
        trial = plan.design(plan.priors[0] or flat, order.bounds)
        trial.debias(trial.mean([order.bounds[0]]))
        return
    except NotUnbiasedError:
        name = order.mechanism if isinstance(order.mechanism, str) else type(order.mechanism).__name__
    raise ParameterError(
        f"{name} has no unbiased labels, and a model trained on biased ones is wrong: choose another mechanism, "
        "or say --debiased no if you know how to use them"
    )


def refuse_label_folders(parts: Sequence[Part], label: str) -> None:
    """Refuse files in folders named by the label: where a row lies would tell its label."""
    for part in parts:
        for key in partition_keys(part.path.absolute()) if part.path is not None else ():
            if key.casefold() == label.casefold():
                raise ParameterError(
                    f"the files lie in folders named by the label, {key}=…/, and where a row lies gives its label "
                    "away: put them all into one folder first, in an order that does not tell"
                )


def refuse_same(paths: Mapping[str, str | os.PathLike[str] | None]) -> None:
    """Refuse to use one file for two purposes: the second would replace the first."""
    seen: dict[str, str] = {}
    for name, path in paths.items():
        if path is None or os.fspath(path) == PIPE:
            continue
        place = os.path.realpath(path)
        if place in seen:
            raise ParameterError(f"{name} and {seen[place]} are the same file, {path}: name another")
        seen[place] = name


def refuse_overlap(source: str, to: str, parts: Sequence[Part]) -> None:
    """Refuse to write over the table, or into the folder that it is read from."""
    if PIPE in (to, source):
        return
    target = Path(to).resolve()
    if Path(source).is_dir() and Path(source).resolve() in (target, *target.parents):
        raise ParameterError(f"{to} lies in the folder that the table is read from: write elsewhere")
    for part in parts:
        if part.path is None:
            continue
        if target.exists() and target.samefile(part.path):
            raise ParameterError(f"{to} is the table itself: write to another file")
        if target in part.path.resolve().parents:
            raise ParameterError(f"{to} is a folder that the table is read from: write elsewhere")
