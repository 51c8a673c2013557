"""How the paper trains: splits, budgets, networks, schedules; and what is decided where it does not say."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from labeldp.datasets import Dataset
from labeldp.errors import ParameterError
from labeldp.paper.published import BUDGETS

__all__ = [
    "DATASETS",
    "TRIALS",
    "Protocol",
    "Scale",
    "Source",
    "checked_budgets",
    "prepared",
    "protocol_for",
    "seed_of",
    "split",
]

Source = Literal["text", "code"]
Scale = Literal["auto", "none", "standard"]
DATASETS = ("crime", "housing", "criteo")
TRIALS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Protocol:
    """How one network of the paper is trained, and on what."""

    dataset: str
    source: Source
    scale: Scale = "none"
    hidden: tuple[int, ...] = (128, 64)
    embedding: int = 8
    activation: Literal["relu", "elu"] = "relu"
    optimiser: Literal["adam", "rmsprop"] = "adam"
    schedule: Literal["tenth at half", "half every 10", "cosine", "cosine to 5e-6"] = "tenth at half"
    learning_rate: float = 1e-3
    weight_decay: float = 1e-4
    epochs: int = 50
    batch: int = 256
    notes: tuple[str, ...] = ()

    def learning_rates(self) -> NDArray[np.float32]:
        """Return the rate of each epoch.

        Examples
        --------
        >>> rates = protocol_for("crime", "text").learning_rates()
        >>> round(float(rates[24]), 6), round(float(rates[25]), 6)
        (0.001, 0.0001)
        """
        epoch = np.arange(self.epochs)
        if self.schedule == "tenth at half":
            factor = np.where(epoch < self.epochs // 2, 1.0, 0.1)
        elif self.schedule == "half every 10":
            factor = 0.5 ** (epoch // 10)
        else:
            floor = 0.0 if self.schedule == "cosine" else 5e-6 / self.learning_rate
            factor = floor + (1 - floor) * (1 + np.cos(np.pi * epoch / self.epochs)) / 2
        return np.asarray(self.learning_rate * factor, dtype=np.float32)


_SCALING = {
    (
        "housing",
        "none",
    ): 'Features are not scaled: the paper says "we use the data directly", and its code does. Its '
    "networks suffer from it, with or without privacy; `--scale standard` shows by how much.",
    (
        "criteo",
        "standard",
    ): "Criteo's numbers are scaled here (log(1 + x), then standardised on the training rows). "
    "The paper does not say what it did; raw seconds and euros beside embeddings of about 1 do not train.",
    (
        "criteo",
        "none",
    ): "Criteo's numbers are not scaled: raw seconds and euros stand beside embeddings of about 1.",
}
_OTHER = {
    "crime": (
        "Columns with gaps are left out under either protocol. Leaving out rows, as the text says, would keep "
        "319; its 1,595 training rows are 80 % of 1,994, which only leaving out columns keeps.",
    ),
    "criteo": ("Embeddings have 8 dimensions and start from N(0, 1), as in the published code.",),
}


def _notes(dataset: str, scale: Scale) -> tuple[str, ...]:
    usual = "Features are standardised on the training rows." if scale == "standard" else ""
    scaling = _SCALING.get((dataset, scale), usual)
    return ((scaling,) if scaling else ()) + _OTHER.get(dataset, ())


def protocol_for(
    dataset: str, source: Source = "text", *, scale: Scale = "auto", epochs: int | None = None
) -> Protocol:
    """Return the paper's protocol for a data set, by its text or by its published code.

    Parameters
    ----------
    dataset : {"crime", "housing", "criteo"}
        Any other name gets Housing's protocol: a table of your own.
    source : {"text", "code"}
        Which to follow where they disagree: ReLU or ELU; the rate ×0.1 at epoch 25 or ×0.5 every 10 epochs.
    scale : {"auto", "none", "standard"}
        Whether numeric features are standardised, by the training rows. ``"auto"`` does as the paper does.
    epochs : int, optional
        For a quick look; the paper has 50.
    """
    if source not in get_args(Source):
        raise ParameterError(f"protocol must be text or code, got {source!r}")
    if scale not in get_args(Scale):
        raise ParameterError(f"scale must be auto, none or standard, got {scale!r}")
    if scale == "auto":
        scale = "standard" if dataset == "criteo" else "none"
    given: dict[str, Any] = {"notes": _notes(dataset, scale)} | ({} if epochs is None else {"epochs": epochs})
    if dataset == "criteo":
        return Protocol(
            dataset=dataset,
            source=source,
            scale=scale,
            optimiser="rmsprop",
            schedule="cosine" if source == "text" else "cosine to 5e-6",
            batch=8192,
            **given,
        )
    return Protocol(
        dataset=dataset,
        source=source,
        scale=scale,
        activation="relu" if source == "text" else "elu",
        schedule="tenth at half" if source == "text" else "half every 10",
        **given,
    )


def seed_of(*parts: object) -> int:
    """Return a seed that depends on these names and numbers alone, the same on every machine.

    Examples
    --------
    >>> seed_of("crime", 0, "laplace", 1.0) == seed_of("crime", 0, "laplace", 1.0)
    True
    """
    text = "labeldp paper " + "|".join(repr(part) for part in parts)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:7])


def split(rows: int, dataset: str, trial: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the training rows, 80 %, and the test rows of a trial."""
    order = np.random.default_rng(seed_of(dataset, trial, "split")).permutation(rows)
    cut = int(0.8 * rows)
    return order[:cut], order[cut:]


def prepared(data: Dataset, protocol: Protocol, train: NDArray[np.int64]) -> NDArray[np.float32]:
    """Return the numeric features as the networks see them; they are public, so scaling costs nothing."""
    X = data.X
    if protocol.scale == "standard":
        if data.ids is not None:
            X = np.log1p(np.maximum(X, 0.0))
        spread = X[train].std(axis=0)
        X = (X - X[train].mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    return X.astype(np.float32)


def checked_budgets(budgets: Sequence[float] | None) -> tuple[float, ...]:
    """Return budgets, the paper's by default, in increasing order."""
    if budgets is None:
        return BUDGETS
    if not budgets or any(not (b == math.inf or 0.001 <= b <= 20) for b in budgets):
        raise ParameterError("budgets must be numbers from 0.001 to 20, or inf for no privacy")
    return tuple(sorted(set(budgets)))
