"""How the paper trains: splits, budgets, networks, schedules; and what is decided where it does not say."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from labeldp.errors import ParameterError
from reproduction.categories import CategoricalDataset
from reproduction.datasets.dataset import Dataset
from reproduction.published import BUDGETS

Source = Literal["text", "code", "private"]
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

    @property
    def title(self) -> str:
        """Whose protocol it is."""
        if self.source == "private":
            return "Our own protocol: the paper's text, with rows and features that tell nothing of labels"
        return f"Protocol of the paper's {self.source}"

    @property
    def notes(self) -> tuple[str, ...]:
        """What was decided where the paper does not say, or says two things."""
        standard = "Features are standardised on the training rows." if self.scale == "standard" else ""
        scaling = _SCALING.get((self.dataset, self.scale), standard)
        return tuple(note for note in (scaling, _OTHER.get(self.dataset)) if note)


_SCALING = {
    ("housing", "none"): 'Features are not scaled: the paper says "we use the data directly", and its code does. '
    "Its networks suffer from it, with or without privacy; `--scale standard` shows by how much.",
    (
        "criteo",
        "standard",
    ): "Criteo's numbers are scaled here (log(1 + x), then standardised on the training rows). "
    "The text does not say what it did; the code leaves them raw.",
    (
        "criteo",
        "none",
    ): "Criteo's numbers are raw, as in the code: seconds and euros stand beside embeddings of about 1.",
}
_OTHER = {
    "crime": "Columns with gaps are left out under either protocol. Leaving out rows, as the text says, would "
    "keep 319; its 1,595 training rows are 80 % of 1,994, which only leaving out columns keeps.",
    "criteo": "Embeddings have 8 dimensions and start from N(0, 1), as in the published code.",
}


def protocol_for(
    dataset: str, source: Source = "text", *, scale: Scale = "auto", epochs: int | None = None
) -> Protocol:
    """Return the paper's protocol for a data set, by its text or by its published code.

    Parameters
    ----------
    dataset : {"crime", "housing", "criteo"}
        Any other name gets Housing's protocol: a table of your own, or "diabetes", whose features are scaled.
    source : {"text", "code", "private"}
        Which to follow where they disagree: ReLU or ELU; the rate ×0.1 at epoch 25 or ×0.5 every 10 epochs.
        ``"private"`` is the text with features and rows of Criteo that tell nothing of labels.
    scale : {"auto", "none", "standard"}
        Whether numeric features are standardised, by the training rows. ``"auto"`` does as the paper does.
    epochs : int, optional
        For a quick look; the paper has 50.
    """
    if source not in get_args(Source):
        raise ParameterError(f"protocol must be text, code or private, got {source!r}")
    if source == "private" and dataset != "criteo":
        raise ParameterError("the protocol private is for criteo: other data need no change to be private")
    if scale not in get_args(Scale):
        raise ParameterError(f"scale must be auto, none or standard, got {scale!r}")
    criteo, text = dataset == "criteo", source != "code"
    options: dict[str, Any] = {} if epochs is None else {"epochs": epochs}
    if criteo:
        options |= {"optimiser": "rmsprop", "schedule": "cosine" if text else "cosine to 5e-6", "batch": 8192}
    if dataset == "diabetes":
        options |= {"batch": 16}  # of 353 rows, where the paper's 256 would be two steps an epoch
    if not criteo and not text:
        options |= {"activation": "elu", "schedule": "half every 10"}
    if scale == "auto":
        scale = "standard" if dataset == "diabetes" or (criteo and text) else "none"
    return Protocol(dataset=dataset, source=source, scale=scale, **options)


def seed_of(*parts: object) -> int:
    """Return a seed that depends on these names and numbers alone, the same on every machine.

    Examples
    --------
    >>> seed_of("crime", 0, "laplace", 1.0) == seed_of("crime", 0, "laplace", 1.0)
    True
    """
    text = "labeldp paper " + "|".join(repr(part) for part in parts)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:7])


def paper_name(data: Dataset) -> str:
    """Return the name of a data set in the paper, for a part or a twin of it too.

    Examples
    --------
    >>> paper_name(Dataset("criteo twin, 40 rows", np.empty((0, 0)), np.empty(0), (0, 1), ()))
    'criteo'
    """
    return data.name.split(",")[0].split()[0]


def split(rows: int, dataset: str, trial: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the training rows, 80 %, and the test rows of a trial."""
    order = np.random.default_rng(seed_of(dataset, trial, "split")).permutation(rows)
    cut = int(0.8 * rows)
    return order[:cut], order[cut:]


def network_features(data: Dataset, protocol: Protocol, train: NDArray[np.int64]) -> NDArray[np.float32]:
    """Return the numeric features as the networks see them; they are public, so scaling costs nothing."""
    X = data.X
    if protocol.scale == "standard":
        if isinstance(data, CategoricalDataset):
            X = np.log1p(np.maximum(X, 0.0))
        spread = X[train].std(axis=0)
        X = (X - X[train].mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    return X.astype(np.float32)


def parse_budgets(text: str | None) -> tuple[float, ...]:
    """Return budgets in increasing order; the paper's by default.

    Examples
    --------
    >>> parse_budgets("1,inf,0.5")
    (0.5, 1.0, inf)
    """
    if text is None:
        return BUDGETS
    try:
        budgets = {float(part) for part in text.split(",")}
    except ValueError:
        raise ParameterError("budgets must be numbers with commas between them, such as 0.5,1,inf") from None
    if any(not (b == math.inf or 0.001 <= b <= 20) for b in budgets):
        raise ParameterError("budgets must be numbers from 0.001 to 20, or inf for no privacy")
    return tuple(sorted(budgets))
