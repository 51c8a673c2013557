"""One table of the paper, from data to results: planned in chunks, resumable, with news on the way."""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Callable
from concurrent.futures import Executor, Future, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np

from labeldp import __version__
from labeldp.datasets import Dataset
from labeldp.errors import ParameterError
from labeldp.paper import others
from labeldp.paper.columns import NO_PRIVACY, Cell, Column
from labeldp.paper.labels import Labels
from labeldp.paper.networks import Network
from labeldp.paper.protocol import Protocol, prepared, seed_of, split
from labeldp.paper.store import Result, Store
from labeldp.paper.train import Batch, Trainer, as_key, offsets

__all__ = ["Chunk", "News", "Table", "plan", "run"]

News = Callable[[str, int, int], None]
"""Is told what goes on (labels, networks, regressors), how much of it was done since, and how much there is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """What is to be found."""

    data: Dataset
    protocol: Protocol
    columns: tuple[Column, ...]
    budgets: tuple[float, ...]
    trials: int
    networks_at_once: int | None = None
    memory: int | None = None
    workers: int = 1

    def __post_init__(self) -> None:
        if self.trials < 1 or self.protocol.epochs < 1:
            raise ParameterError("there must be at least one trial and one epoch")
        if self.networks_at_once is not None and self.networks_at_once < 1:
            raise ParameterError("at least one network must be trained at once")

    def network_cells(self) -> list[tuple[Column, float]]:
        """Return the networks of one trial."""
        private = [b for b in self.budgets if math.isfinite(b)]
        cells = [(c, b) for c in self.columns if c.kind == "network" for b in private]
        return cells + ([(NO_PRIVACY, math.inf)] if math.inf in self.budgets else [])

    def other_cells(self) -> list[Cell]:
        """Return what is not a network: regressors and the private constant."""
        keys = [c.key for c in self.columns if c.kind != "network"]
        private = [b for b in self.budgets if math.isfinite(b)]
        return [Cell(trial, key, b) for trial in range(self.trials) for key in keys for b in private]


@dataclass(frozen=True, slots=True)
class Chunk:
    """Networks that train together: some networks of some trials; the last ones may be padding."""

    name: str
    trials: tuple[int, ...]
    networks: tuple[tuple[Column, float], ...]
    padding: int


def plan(table: Table, at_once: int, devices: int) -> list[Chunk]:
    """Return chunks of one shape: as many trials as fit, or parts of one.

    Parameters
    ----------
    table : Table
    at_once : int
        Networks that may train together.
    devices : int
        Each chunk has a multiple of this many networks.
    """
    cells = table.network_cells()
    if not cells:
        return []
    groups = -(-len(cells) // max(1, at_once))
    size = -(-len(cells) // groups)
    size = -(-size // devices) * devices
    together = max(1, min(table.trials, at_once // size)) if groups == 1 else 1
    while table.trials % together:  # one shape for all chunks, so one compilation
        together -= 1
    return [
        Chunk(
            f"networks-{first:03d}-{k:03d}",
            tuple(range(first, first + together)),
            tuple(cells[k * size : (k + 1) * size]),
            size - len(cells[k * size : (k + 1) * size]),
        )
        for first in range(0, table.trials, together)
        for k in range(-(-len(cells) // size))
    ]


def settings(table: Table, trainer: Trainer, at_once: int) -> dict[str, Any]:
    """Return all that decides the results, as pure data."""
    data = table.data
    digest = hashlib.sha256()
    for part in (data.X, data.y, data.ids):
        if part is not None:
            digest.update(repr(part.shape).encode() + np.ascontiguousarray(part).tobytes())
    protocol = {k: v for k, v in asdict(table.protocol).items() if k != "notes"}
    return {
        "data": digest.hexdigest(),
        "rows": len(data.y),
        "bounds": data.bounds,
        "protocol": protocol,
        "columns": [c.key for c in table.columns],
        "budgets": table.budgets,
        "trials": table.trials,
        "networks_at_once": at_once,
        "platform": trainer.platform,
        "devices": trainer.devices,
        "versions": {"labeldp": __version__, "jax": jax.__version__},
    }


def run(
    table: Table, folder: str | os.PathLike[str], news: News = lambda what, done, total: None
) -> tuple[Store, list[Result]]:
    """Find all results, or those that are not there yet; return the folder and all of them."""
    data, protocol = table.data, table.protocol
    train, test = split(len(data.y), protocol.dataset, 0)
    trainer = Trainer(Network.of(data, protocol), protocol, len(train), len(test))
    at_once = table.networks_at_once or trainer.at_once(table.memory)
    wanted = settings(table, trainer, at_once)
    chunks = plan(table, at_once, trainer.devices)
    finished = _finished_elsewhere(table, folder)
    if finished:
        chunks, wanted = finished, wanted | _of_machine(Store.settings_in(folder))
    store = Store(folder, wanted)
    total = sum(_epochs(chunk, table) for chunk in chunks)
    releases = sum(_networks(chunk) for chunk in chunks)
    todo = [chunk for chunk in chunks if not store.has(chunk.name)]
    if len(todo) < len(chunks):
        news("labels", releases - sum(_networks(chunk) for chunk in todo), releases)
        news("networks", total - sum(_epochs(chunk, table) for chunk in todo), total)
    with others.pool(data, protocol, table.workers) as pool:
        ahead = [_labels(pool, chunk) for chunk in todo[:1]]
        for k, chunk in enumerate(todo):
            ahead += [_labels(pool, following) for following in todo[k + 1 : k + 2]]
            made = _made(ahead.pop(0), lambda: news("labels", 1, releases))
            store.keep(chunk.name, _train(table, trainer, chunk, made, lambda done: news("networks", done, total)))
        names = [chunk.name for chunk in chunks] + _others(table, store, pool, news)
    return store, store.read(names)


def _of_machine(found: dict[str, Any]) -> dict[str, Any]:
    """Return the settings that may differ from machine to machine."""
    return {key: found[key] for key in ("networks_at_once", "platform", "devices", "versions") if key in found}


def _finished_elsewhere(table: Table, folder: str | os.PathLike[str]) -> list[Chunk]:
    """Return the chunks of a folder whose networks are all there, whatever machine trained them."""
    found = _of_machine(Store.settings_in(folder))
    if len(found) < 4:
        return []
    chunks = plan(table, found["networks_at_once"], found["devices"])
    done = {path.stem for path in (Path(folder) / "chunks").glob("*.csv")}
    return chunks if all(chunk.name in done for chunk in chunks) else []


def _labels(pool: Executor, chunk: Chunk) -> list[list[Future[Labels]]]:
    """Let others make a chunk's labels, while the one before is trained."""
    return [
        [pool.submit(others.labels, Cell(trial, column.key, epsilon)) for column, epsilon in chunk.networks]
        for trial in chunk.trials
    ]


def _made(jobs: list[list[Future[Labels]]], done: Callable[[], None]) -> list[list[Labels]]:
    """Wait for a chunk's labels, and tell of each: on an accelerator they take longer than the training."""
    found: list[list[Labels]] = []
    for of_trial in jobs:
        found.append([])
        for job in of_trial:
            found[-1].append(job.result())
            done()
    return found


def _networks(chunk: Chunk) -> int:
    return len(chunk.trials) * len(chunk.networks)


def _epochs(chunk: Chunk, table: Table) -> int:
    return _networks(chunk) * table.protocol.epochs


def _train(
    table: Table, trainer: Trainer, chunk: Chunk, made: list[list[Labels]], done: Callable[[int], None]
) -> list[Result]:
    """Train the networks of a chunk and return their results."""
    done(0)
    each = _networks(chunk)
    errors = trainer.fit(_batch(table, chunk, made), lambda epochs: done(epochs * each))
    return [
        Result(
            table.data.name,
            trial,
            column.key,
            epsilon,
            float(errors[t, k]),
            column.private,
            labels.epsilon,
            labels.delta,
            labels.detail,
        )
        for t, trial in enumerate(chunk.trials)
        for k, ((column, epsilon), labels) in enumerate(zip(chunk.networks, made[t], strict=True))
    ]


def _batch(table: Table, chunk: Chunk, made: list[list[Labels]]) -> Batch:
    data, protocol = table.data, table.protocol
    ids = np.zeros((len(data.y), 0), np.int32) if data.ids is None else data.ids + offsets(data.sizes)
    parts: dict[str, list[Any]] = {name: [] for name in Batch.__dataclass_fields__}
    for trial, labels in zip(chunk.trials, made, strict=True):
        train, test = split(len(data.y), protocol.dataset, trial)
        numbers = prepared(data, protocol, train)
        own = [one.values.astype(np.float32) for one in labels]
        starts = [as_key(seed_of(protocol.dataset, trial, c.key, e, "weights")) for c, e in chunk.networks]
        parts["numbers"].append(numbers[train])
        parts["ids"].append(ids[train])
        parts["labels"].append(np.stack(own + own[-1:] * chunk.padding, axis=1))
        parts["test_numbers"].append(numbers[test])
        parts["test_ids"].append(ids[test])
        parts["test_labels"].append(data.y[test].astype(np.float32))
        parts["orders"].append(as_key(seed_of(protocol.dataset, trial, "order")))
        parts["starts"].append(np.stack(starts + starts[-1:] * chunk.padding))
    return Batch(**{name: np.stack(each) for name, each in parts.items()})


def _others(table: Table, store: Store, pool: Executor, news: News) -> list[str]:
    """Fit regressors and constants; return the chunks' names."""
    named = {f"{c.column}-{c.trial:03d}-{c.epsilon:g}": c for c in table.other_cells()}
    left = {name: cell for name, cell in named.items() if not store.has(name)}
    if named:
        news("regressors", len(named) - len(left), len(named))
    jobs = {pool.submit(others.fit, cell): name for name, cell in left.items()}
    for job in as_completed(jobs):
        store.keep(jobs[job], [job.result()])
        news("regressors", 1, len(named))
    return list(named)
