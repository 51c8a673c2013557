"""Models from reports by one card, beside models that a curator's machine fits to labels under local trust.

python -m benchmarks.reports --out build/reports.jsonl

The rows of eight development tables of `benchmarks.accuracy` are drawn with replacement until there are so many
respondents; a quarter of the distinct rows are kept for the error. Both models get the same respondents at the
same ε: ``reports`` by one card of `labeldp design` without a prior, ``local`` by ``trust="local", rounds=1``. With
--cards 2 the last four fifths answer by a card for a model (`--for-model`), with the histogram of the first fifth.
With --rounds all answer in three rounds: ``reports`` by `labeldp.learning.survey_rounds`, ``local`` by default.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import warnings
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

import labeldp as ldp
from benchmarks.accuracy import tables
from labeldp.evidence.designs import design_card
from labeldp.learning.survey_rounds import plan_round

TABLES = ("housing", "incomes", "friedman", "checkers", "counts", "claims", "steps", "many")


SHARES = (0.2, 0.5)
"""The shares of respondents that have answered before the second and the third round, or the second card."""

Learner = Callable[[Any, Any, dict[str, Any]], ldp.LabelReleaseRegressor]


def by_one_card(X: Any, y: Any, budget: dict[str, Any]) -> ldp.LabelReleaseRegressor:
    """Return the model of reports by one card."""
    mechanism = design_card(**budget)
    reports = ldp.Reports(mechanism.randomize(y), mechanism)
    return ldp.LabelReleaseRegressor(**budget).fit_reports(X, reports)


def by_two_cards(X: Any, y: Any, budget: dict[str, Any]) -> ldp.LabelReleaseRegressor:
    """Return the model of reports by one card, and then by a card for a model that has their histogram."""
    first = round(SHARES[0] * len(y))
    mechanism = design_card(**budget)
    reports = ldp.Reports(mechanism.randomize(y[:first]), mechanism)
    mechanism = design_card(**budget, prior=reports.histogram(), rows=len(y))
    reports += ldp.Reports(mechanism.randomize(y[first:]), mechanism)
    return ldp.LabelReleaseRegressor(**budget).fit_reports(X, reports)


def in_rounds(X: Any, y: Any, budget: dict[str, Any]) -> ldp.LabelReleaseRegressor:
    """Return the model of reports in three rounds, later ones in intervals around predictions."""
    ends = [0, *(round(share * len(y)) for share in SHARES), len(y)]
    model, reports = None, None
    for start, stop in pairwise(ends):
        plan = plan_round(X[start:stop], rows=len(y), model=model, **budget)
        values = plan.mechanism.randomize(plan.positions(y[start:stop]))
        arrived = ldp.Reports(values, plan.mechanism, intervals=plan.intervals)
        reports = arrived if reports is None else reports + arrived
        model = ldp.LabelReleaseRegressor(**budget).fit_reports(X[:stop], reports)
    assert model is not None
    return model


def errors(name: str, epsilon: float, rows: int, split: int, learner: Learner) -> dict[str, float]:
    """Return the test error of each model, and of the constant."""
    rounds = "auto" if learner is in_rounds else 1
    table = tables.load(name)
    rng = np.random.default_rng(split)
    order = rng.permutation(len(table.y))
    test, train = np.split(order, [len(order) // 4])
    respondents = rng.choice(train, rows)
    X, y, bounds = table.X[respondents], table.y[respondents], table.bounds
    budget = {"epsilon": epsilon, "bounds": bounds}
    models = {
        "reports": learner(X, y, budget),
        "local": ldp.LabelReleaseRegressor(trust="local", rounds=rounds, **budget).fit(X, y),
    }
    predicted = {label: model.predict(table.X[test]) for label, model in models.items()}
    predicted["constant"] = np.full(len(test), y.mean())
    return {label: math.sqrt(np.mean((values - table.y[test]) ** 2)) for label, values in predicted.items()}


def main() -> None:
    """Append a line for each table, ε and split that the file lacks, and print ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("build/reports.jsonl"))
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--splits", type=int, default=2)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[1.0, 4.0])
    parser.add_argument("--tables", nargs="+", default=TABLES)
    parser.add_argument("--rounds", action="store_true")
    parser.add_argument("--cards", type=int, default=1, choices=(1, 2))
    options = parser.parse_args()
    learner = in_rounds if options.rounds else {1: by_one_card, 2: by_two_cards}[options.cards]
    warnings.simplefilter("ignore")
    options.out.parent.mkdir(parents=True, exist_ok=True)
    ratios = []
    for epsilon in options.epsilons:
        for name in options.tables:
            cells = ((name, epsilon, options.rows, split) for split in range(options.splits))
            found = [errors(*cell, learner) for cell in cells]
            mean = {label: float(np.mean([one[label] for one in found])) for label in found[0]}
            line = {"table": name, "epsilon": epsilon, **mean}
            line |= {
                "to_local": mean["reports"] / mean["local"],
                "to_constant": mean["reports"] / mean["constant"],
            }
            ratios.append(line)
            with options.out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
            shares = f"{line['to_local']:.3f} of local, {line['to_constant']:.3f} of the constant"
            print(f"{name:10} ε = {epsilon:g}: {shares}", flush=True)
    for epsilon in options.epsilons:
        logs = [math.log(line["to_local"]) for line in ratios if line["epsilon"] == epsilon]
        print(f"ε = {epsilon:g}: {math.exp(np.mean(logs)):.3f} of local in the geometric mean")


if __name__ == "__main__":
    main()
