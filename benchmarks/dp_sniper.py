"""DP-Sniper, an auditor of ETH Zürich, on mechanisms and whole fits: ``python -m benchmarks.dp_sniper PATH``.

PATH is a checkout of github.com/eth-sri/dp-sniper; none of it is part of this repository. Its algorithm chooses an
event with a classifier and bounds ε from below by counting on fresh samples. The classifier is scikit-learn's, in
place of DP-Sniper's PyTorch one, on the value and its 64 bits. Writes benchmarks/dp_sniper.md. A bound above ε
would be a violation; NumPy's Laplace noise, which must be caught, shows that it can see one.

References
----------
Bichsel, Steffen, Bogunovic, Vechev. DP-Sniper: Black-Box Discovery of Differential Privacy Violations using
Classifiers. IEEE S&P 2021.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import sys
import warnings
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Annotated, Any

import numpy as np
import typer
from sklearn.ensemble import HistGradientBoostingClassifier

import labeldp as ldp
from benchmarks.report import commit, cpu

OUT = Path(__file__).with_name("dp_sniper.md")
BOUNDS = (0.0, 5.0)
EPSILONS = (0.1, 1.0, 3.0)
CONFIDENCE = 0.9999
"""Of each bound; all of the table are right together with 99.7 %."""
X = np.array([[1.0], [0.0], [0.0], [0.5]])
NEIGHBOURS = (np.array([0.0, 1.0, 1.0, 2.0]), np.array([5.0, 1.0, 1.0, 2.0]))

Draw = Callable[[np.ndarray, int], np.ndarray]
"""From an input and a number to as many outputs."""


def mechanisms(epsilon: float) -> dict[str, ldp.mechanisms.Mechanism]:
    prior = ldp.Histogram(np.linspace(*BOUNDS, 11), [1, 3, 6, 8, 7, 5, 3, 2, 1, 1])
    return {
        "RPWithPrior": ldp.RPWithPrior(interval=BOUNDS, zeta=1.5, epsilon=epsilon),
        "Laplace": ldp.Laplace(bounds=BOUNDS, epsilon=epsilon),
        "Staircase": ldp.Staircase(bounds=BOUNDS, epsilon=epsilon),
        "RROnBins": ldp.RROnBins.design(prior, epsilon),
        "Unbiased": ldp.Unbiased.design(prior, epsilon, size=32),
    }


def of_mechanism(mechanism: ldp.mechanisms.Mechanism) -> Draw:
    return lambda a, size: mechanism.randomize(np.full(size, a[0]))


def of_numpy(epsilon: float) -> Draw:
    rng = np.random.default_rng()
    return lambda a, size: a[0] + rng.laplace(0, (BOUNDS[1] - BOUNDS[0]) / epsilon, size)


def of_fit(kind: Any, epsilon: float, times: float = 1.0) -> Draw:
    """Return the predictions of whole fits of four rows, and what a release of labels shows besides."""

    def once(labels: np.ndarray) -> list[float]:
        model = kind(epsilon=times * epsilon, bounds=BOUNDS, ledger=ldp.Ledger()).fit(X, labels)
        release = getattr(model, "release_", None)
        return [*model.predict(X), *([] if release is None else release.labels)]

    return lambda a, size: np.array([once(a) for _ in range(size)])


# ---- DP-Sniper, with a classifier of scikit-learn --------------------------------------------------------------


def bits(outputs: np.ndarray) -> np.ndarray:
    """Return each number of an output, and all bits of it."""
    words = np.ascontiguousarray(outputs, dtype=np.float64).view(np.uint64)
    one_by_one = [(words >> np.uint64(k)) & np.uint64(1) for k in range(64)]
    return np.concatenate([outputs, *one_by_one], axis=1)


def load(path: Path) -> SimpleNamespace:
    """Import DP-Sniper from a checkout, with stand-ins for what needs PyTorch, which are never called."""
    sys.path.insert(0, str(path))
    for name, attribute in (("classifiers.multi_layer_perceptron", "MultiLayerPerceptron"),
                            ("utils.torch", "torch_initialize")):  # fmt: skip
        stand_in = ModuleType(f"dpsniper.{name}")
        setattr(stand_in, attribute, object)
        sys.modules[stand_in.__name__] = stand_in
    modules = {
        "DPSniper": "attack.dpsniper",
        "ClassifierFactory": "classifiers.classifier_factory",
        "StableClassifier": "classifiers.stable_classifier",
        "Mechanism": "mechanisms.abstract",
        "EpsEstimator": "probability.estimators",
        "PrEstimator": "probability.estimators",
        "DDConfig": "search.ddconfig",
    }
    return SimpleNamespace(
        **{name: getattr(import_module(f"dpsniper.{module}"), name) for name, module in modules.items()}
    )


def bound(sniper: SimpleNamespace, draw: Draw, pair: tuple[Any, Any], samples: int, c: float) -> float:
    """Return DP-Sniper's lower bound of ε, the larger of both directions; a quarter trains, a quarter cuts."""

    class Drawn(sniper.Mechanism):  # type: ignore[misc, name-defined]
        def m(self, a: np.ndarray, n_samples: int = 1) -> np.ndarray:
            return draw(a, n_samples)

    class Trees(sniper.StableClassifier):  # type: ignore[misc, name-defined]
        def _train(self, batches: Iterator[tuple[np.ndarray, np.ndarray]]) -> None:
            x, y = (np.concatenate(part) for part in zip(*batches, strict=True))
            self.trees = HistGradientBoostingClassifier(max_iter=60).fit(bits(x), y)

        def _predict_probabilities(self, x: np.ndarray) -> np.ndarray:
            return self.trees.predict_proba(bits(x))[:, 0]

    sizes = {"n_train": samples // 4, "n": samples // 4, "n_check": 1000, "n_final": samples // 2}
    config = sniper.DDConfig(c=c, n_processes=1, confidence=CONFIDENCE, prediction_batch_size=50_000, **sizes)
    found = []
    for one, other in (pair, pair[::-1]):
        attack = sniper.DPSniper(Drawn(), sniper.ClassifierFactory(Trees), config).best_attack(one, other)
        estimator = sniper.EpsEstimator(sniper.PrEstimator(Drawn(), config.n_final, config))
        found.append(estimator.compute_eps_estimate(one, other, attack)[1])
    return max(0.0, *map(float, found))


def main(
    path: Annotated[Path, typer.Argument(help="A checkout of DP-Sniper.")],
    samples: Annotated[int, typer.Option(help="Outputs of a mechanism for each bound and direction.")] = 1_600_000,
    fits: Annotated[int, typer.Option(help="Fits for each bound and direction.")] = 4000,
) -> None:
    """Bound ε from below for mechanisms and for fits, and write the table."""
    warnings.simplefilter("ignore")
    sniper, lines = load(path), list[str]()
    labels = {"ends of the bounds": (np.array([0.0]), np.array([5.0])), "two near labels": ([1.0], [1.05])}

    def measure(what: str, epsilon: float, draw: Draw, pair: Any, size: int, c: float) -> None:
        found = bound(sniper, draw, tuple(map(np.asarray, pair)), size, c)
        above = "**above**" if found > epsilon else "no"
        lines.append(f"| {what} | {epsilon:g} | {found:.3f} | {above} |")
        print(lines[-1], flush=True)

    for epsilon in EPSILONS:
        for name, mechanism in mechanisms(epsilon).items():
            measure(name, epsilon, of_mechanism(mechanism), labels["ends of the bounds"], samples, 0.01)
    for name in ("Laplace", "RPWithPrior"):
        draw = of_mechanism(mechanisms(0.1)[name])
        measure(f"{name}, two near labels", 0.1, draw, labels["two near labels"], samples, 0.01)
    near = labels["two near labels"]
    measure("NumPy's Laplace noise, two near labels (must be caught)", 0.1, of_numpy(0.1), near, samples, 0.01)
    for kind in (ldp.ModelReleaseRegressor, ldp.LabelReleaseRegressor):
        measure(f"{kind.__name__}, whole fits", 1.0, of_fit(kind, 1.0), NEIGHBOURS, fits, 0.05)
    caught = of_fit(ldp.ModelReleaseRegressor, 1.0, times=6.0)
    measure("ModelReleaseRegressor at 6 ε (must be caught)", 1.0, caught, NEIGHBOURS, fits, 0.05)
    head = (
        f"# DP-Sniper\n\nWritten by `python -m benchmarks.dp_sniper PATH --samples {samples} --fits {fits}` at "
        f"{commit()} on {cpu()}. Each bound holds with {100 * CONFIDENCE:g} %; the larger of both directions is "
        f"shown. Mechanisms: {samples:,} outputs, half of them for the count; fits of four rows: {fits:,}.\n\n"
        "| what | claimed ε | ε is at least | above the claim |\n|---|---:|---:|---|\n"
    )
    OUT.write_text(head + "\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    typer.run(main)
