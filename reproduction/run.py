"""One table of the paper, from data to results: planned in chunks, resumable, with progress on the way."""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Callable
from concurrent.futures import Executor, Future
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np

from labeldp import __version__
from labeldp.errors import ParameterError
from reproduction import workers
from reproduction.categories import categories_of
from reproduction.columns import NO_PRIVACY, Cell, Column
from reproduction.datasets.dataset import Dataset
from reproduction.labels import Labels
from reproduction.networks import Network
from reproduction.protocol import Protocol, network_features, seed_of, split
from reproduction.store import Result, Store
from reproduction.train import Batch, Trainer, as_key

Progress = Callable[[str, int, int], None]
"""Called with a kind of work (labels, networks, regressors), the steps done since the last call, and all steps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """What is to be computed."""

    data: Dataset
    protocol: Protocol
    columns: tuple[Column, ...]
    budgets: tuple[float, ...]
    trials: int
    networks_at_once: int | None = None
    memory: int | None = None
    workers: int = 1
    modules: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.trials < 1 or self.protocol.epochs < 1:
            raise ParameterError("there must be at least one trial and one epoch")
        if self.networks_at_once is not None and self.networks_at_once < 1:
            raise ParameterError("at least one network must be trained at once")

    def network_cells(self) -> list[tuple[Column, float]]:
        """Return the networks of one trial."""
        cells = [(c, b) for c in self.columns if c.kind == "network" for b in self.budgets if math.isfinite(b)]
        return cells + ([(NO_PRIVACY, math.inf)] if math.inf in self.budgets else [])

    def other_cells(self) -> list[Cell]:
        """Return what is not a network: regressors and the private constant."""
        cells = [(c.key, b) for c in self.columns if c.kind != "network" for b in self.budgets if math.isfinite(b)]
        return [Cell(trial, key, b) for trial in range(self.trials) for key, b in cells]


@dataclass(frozen=True, slots=True)
class Chunk:
    """Networks that train together: some networks of some trials; the last ones may be padding."""

    name: str
    trials: tuple[int, ...]
    networks: tuple[tuple[Column, float], ...]
    padding: int

    @property
    def size(self) -> int:
        """How many networks there are, without padding."""
        return len(self.trials) * len(self.networks)


def plan(table: Table, at_once: int, devices: int) -> list[Chunk]:
    """Return chunks of one shape, with at most ``at_once`` networks: as many trials as fit, or parts of one.

    The number of networks of a trial in a chunk is a multiple of ``devices``.
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
    chunks = []
    for first in range(0, table.trials, together):
        for k, start in enumerate(range(0, len(cells), size)):
            networks, trials = tuple(cells[start : start + size]), tuple(range(first, first + together))
            name = f"networks-{first:03d}-{trials[-1]:03d}-{k:03d}"
            chunks.append(Chunk(name, trials, networks, size - len(networks)))
    return chunks


def run(
    table: Table, folder: str | os.PathLike[str], progress: Progress = lambda what, done, total: None
) -> list[Result]:
    """Compute all results that are not in the folder yet; return all of them, and keep them as results.csv."""
    data, protocol, store = table.data, table.protocol, Store(Path(folder))
    train, test = split(len(data.y), protocol.dataset, 0)
    trainer = Trainer(Network.of(data, protocol), protocol, len(train), len(test))
    a_trial = -(-max(1, len(table.network_cells())) // trainer.devices) * trainer.devices
    machine: dict[str, Any] = {
        # One trial at a time, so that a run that is killed loses no more.
        "networks_at_once": table.networks_at_once or min(trainer.at_once(table.memory), a_trial),
        "platform": trainer.platform,
        "devices": trainer.devices,
        "jax": jax.__version__,
    }
    chunks = plan(table, machine["networks_at_once"], trainer.devices)
    before = store.settings()
    if machine.keys() <= before.keys():
        # Whatever machine trained them: networks that are all there need not be trained again.
        finished = plan(table, before["networks_at_once"], before["devices"])
        if all(store.has(chunk.name) for chunk in finished):
            chunks, machine = finished, {key: before[key] for key in machine}
    store.begin(_settings(table) | machine)
    with workers.pool(data, protocol, table.workers, table.modules) as pool:
        _train_chunks(table, trainer, chunks, store, pool, progress)
        names = [chunk.name for chunk in chunks] + _fit_others(table, store, pool, progress)
    results = store.read(names)
    store.write_table(results)
    return results


def _settings(table: Table) -> dict[str, Any]:
    """Return all that decides the results but the machine, as pure data."""
    data, digest = table.data, hashlib.sha256()
    for part in (data.X, data.y, categories_of(data)[0]):
        digest.update(repr(part.shape).encode() + np.ascontiguousarray(part).tobytes())
    return {
        "version": __version__,
        "data": digest.hexdigest(),
        "modules": [_module_digest(name) for name in table.modules],
        "rows": len(data.y),
        "bounds": data.bounds,
        "columns": [c.key for c in table.columns],
        "budgets": [f"{b!r}" for b in table.budgets],
        "trials": table.trials,
        **{f"protocol.{name}": value for name, value in asdict(table.protocol).items()},
    }


def _module_digest(name: str) -> str:
    """Return a module's name, with the digest of its file where that is how it is named."""
    path = Path(name)
    return f"{path.name} {hashlib.sha256(path.read_bytes()).hexdigest()}" if name.endswith(".py") else name


def _train_chunks(
    table: Table, trainer: Trainer, chunks: list[Chunk], store: Store, pool: Executor, progress: Progress
) -> None:
    """Train the networks that are not in the store; workers release the labels of the next chunk meanwhile."""
    epochs, total = table.protocol.epochs, sum(chunk.size for chunk in chunks)
    todo = [chunk for chunk in chunks if not store.has(chunk.name)]
    if chunks:
        done = total - sum(chunk.size for chunk in todo)
        progress("labels", done, total)
        progress("networks", done * epochs, total * epochs)
    jobs = [_submit_labels(pool, chunk) for chunk in todo[:1]]
    for k, chunk in enumerate(todo):
        jobs += [_submit_labels(pool, following) for following in todo[k + 1 : k + 2]]
        labels: list[list[Labels]] = [[] for _ in chunk.trials]
        for own, futures in zip(labels, jobs.pop(0), strict=True):
            for future in futures:  # on an accelerator labels take longer than training
                own.append(future.result())
                progress("labels", 1, total)

        def advance(done: int, size: int = chunk.size) -> None:
            progress("networks", done * size, total * epochs)

        errors = trainer.fit(batch_of(table, chunk, labels), advance)
        results = [
            Result(table.data.name, trial, c.key, b, float(e), c.private, one.epsilon, one.delta, one.detail)
            for trial, row, own in zip(chunk.trials, errors, labels, strict=True)
            for (c, b), one, e in zip(chunk.networks, own, row, strict=False)  # padding has no labels
        ]
        store.write(chunk.name, results)


def _submit_labels(pool: Executor, chunk: Chunk) -> list[list[Future[Labels]]]:
    return [
        [pool.submit(workers.make_labels, Cell(trial, column.key, budget)) for column, budget in chunk.networks]
        for trial in chunk.trials
    ]


def batch_of(table: Table, chunk: Chunk, labels: list[list[Labels]]) -> Batch:
    """Return what a chunk is trained and tested on, given the labels of each trial's networks."""
    data, protocol = table.data, table.protocol
    ids, sizes = categories_of(data)
    ids = ids + np.cumsum([0, *sizes])[:-1].astype(np.int32)  # places in the one table of embeddings
    parts: dict[str, list[Any]] = {name: [] for name in Batch.__dataclass_fields__}
    for trial, own in zip(chunk.trials, labels, strict=True):
        train, test = split(len(data.y), protocol.dataset, trial)
        numbers = network_features(data, protocol, train)
        values = [one.values.astype(np.float32) for one in own]
        starts = [as_key(seed_of(protocol.dataset, trial, c.key, b, "weights")) for c, b in chunk.networks]
        parts["numbers"].append(numbers[train])
        parts["ids"].append(ids[train])
        parts["labels"].append(np.stack(values + values[-1:] * chunk.padding, axis=1))
        parts["test_numbers"].append(numbers[test])
        parts["test_ids"].append(ids[test])
        parts["test_labels"].append(data.y[test].astype(np.float32))
        parts["orders"].append(as_key(seed_of(protocol.dataset, trial, "order")))
        parts["starts"].append(np.stack(starts + starts[-1:] * chunk.padding))
    return Batch(**{name: np.stack(arrays) for name, arrays in parts.items()})


def _fit_others(table: Table, store: Store, pool: Executor, progress: Progress) -> list[str]:
    """Fit the regressors and constants that are not in the store; return the names of all their chunks."""
    cells = {f"{c.column}-{c.trial:03d}-{c.epsilon:g}": c for c in table.other_cells()}
    todo = {name: cell for name, cell in cells.items() if not store.has(name)}
    if cells:
        progress("regressors", len(cells) - len(todo), len(cells))
    jobs = {name: pool.submit(workers.fit, cell) for name, cell in todo.items()}
    for name, job in jobs.items():
        store.write(name, [job.result()])
        progress("regressors", 1, len(cells))
    return list(cells)
