"""Networks of the paper's Crime table, together and one at a time: ``python -m benchmarks.paper``.

All three train the same networks, from the same seeds, with the same JAX, Optax and precision:

- together: `reproduction.train.Trainer`, as ``python -m reproduction crime`` does;
- one at a time, a jitted step called from Python for each batch, as a usual training loop;
- one at a time, a jitted scan over all steps of an epoch, the fastest that one network alone gets.
"""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import typer
from rich.console import Console

from benchmarks.report import Sheet, commit, cpu, load
from reproduction.columns import choose_columns
from reproduction.data import load as load_data
from reproduction.labels import Labels
from reproduction.networks import Network
from reproduction.protocol import BUDGETS, Protocol, protocol_for, split
from reproduction.run import Chunk, Table, batch_of, plan
from reproduction.train import Batch, Trainer, optimiser, row_order, squared_error

RESULTS = Path(__file__).with_suffix(".md")


class OneAtATime:
    """A network at a time, on one device, with all its cores.

    ``scan`` runs an epoch in one call; without it, every step is a call.
    """

    def __init__(self, network: Network, protocol: Protocol, rows: int, *, scan: bool) -> None:
        self.network, self.protocol, self.rows, self.scan = network, protocol, rows, scan
        self.steps = -(-rows // protocol.batch)
        self._optimiser = optimiser(protocol)
        self._step = jax.jit(self._stepped)
        self._epoch = jax.jit(self._scanned)
        self._order = jax.jit(partial(row_order, rows=rows, length=self.steps * protocol.batch))
        self._predict = jax.jit(network.predict)

    def _stepped(self, state, numbers, ids, labels, used, rate):
        params, memory = state
        slope = jax.grad(partial(squared_error, self.network))(params, numbers, ids, labels, used)
        change, memory = self._optimiser.update(slope, memory, params)
        return jax.tree.map(lambda p, d: p - rate * d, params, change), memory

    def _scanned(self, state, numbers, ids, labels, order, rate):
        batch = self.protocol.batch

        def step(state, k):
            some = jax.lax.dynamic_slice_in_dim(order, k * batch, batch)
            used = (k * batch + jnp.arange(batch) < self.rows).astype(jnp.float32)
            return self._stepped(state, numbers[some], ids[some], labels[some], used, rate), None

        return jax.lax.scan(step, state, jnp.arange(self.steps))[0]

    def fit(self, batch: Batch, trial: int, network: int) -> float:
        """Train one network of a batch; return its test error."""
        with jax.default_matmul_precision("highest"):
            params = self.network.init(jax.random.wrap_key_data(batch.starts[trial, network]))
            state = params, self._optimiser.init(params)
            numbers, ids = batch.numbers[trial], batch.ids[trial]
            labels = np.ascontiguousarray(batch.labels[trial, :, network])
            if self.scan:
                numbers, ids, labels = map(jnp.asarray, (numbers, ids, labels))
            size = self.protocol.batch
            for epoch, rate in enumerate(self.protocol.learning_rates()):
                order = self._order(batch.orders[trial], epoch)
                if self.scan:
                    state = self._epoch(state, numbers, ids, labels, order, rate)
                    continue
                order = np.asarray(order)
                for first in range(0, self.steps * size, size):
                    some = order[first : first + size]
                    used = (first + np.arange(size) < self.rows).astype(np.float32)
                    state = self._step(state, numbers[some], ids[some], labels[some], used, rate)
            predicted = self._predict(state[0], batch.test_numbers[trial], batch.test_ids[trial])
            return float(np.mean((np.asarray(predicted, np.float64) - batch.test_labels[trial]) ** 2))


def example(table: Table, chunk: Chunk) -> Batch:
    """Return a chunk with synthetic labels: what they are does not matter to the clock."""
    rng = np.random.default_rng(0)
    made = []
    for trial in chunk.trials:
        rows, _ = split(len(table.data.y), table.protocol.dataset, trial)
        y = table.data.y[rows]
        made.append([Labels(y + rng.normal(0, 0.3, y.size), 1.0, 0.0, "") for _ in chunk.networks])
    return batch_of(table, chunk, made)


def main(networks: int = 0, singles: int = 6, rounds: int = 3) -> None:
    """Measure, show and keep the results.

    networks: how many train together (0: the default of the command); singles: how many one at a time.
    """
    console, before = Console(), load()
    protocol = protocol_for("crime")
    data = load_data("crime")
    table = Table(data=data, protocol=protocol, columns=choose_columns(), budgets=BUDGETS, trials=10)
    train, test = split(len(data.y), "crime", 0)
    network = Network.of(data, protocol)
    trainer = Trainer(network, protocol, len(train), len(test))
    chunks = plan(table, networks or trainer.at_once(), trainer.devices)
    batch = example(table, chunks[0])
    alone = {
        "one at a time, a jitted step a call": OneAtATime(network, protocol, len(train), scan=False),
        "one at a time, a jitted scan an epoch": OneAtATime(network, protocol, len(train), scan=True),
    }
    started = time.perf_counter()
    errors = trainer.fit(batch)
    first = time.perf_counter() - started
    together, apart = [], {name: [] for name in alone}
    for one in alone.values():
        assert abs(one.fit(batch, 0, 0) - errors[0, 0]) < 1e-2 * errors[0, 0]  # compiles, and agrees
    count = errors.size
    for k in range(rounds):  # in turns, so that a busy machine is busy for all
        started = time.perf_counter()
        trainer.fit(batch)
        together.append((time.perf_counter() - started) / count)
        for name, one in alone.items():
            started = time.perf_counter()
            for j in range(singles):
                one.fit(batch, 0, (k * singles + j) % batch.starts.shape[1])
            apart[name].append((time.perf_counter() - started) / singles)
    best = min(together)
    cells = len(table.network_cells()) * table.trials
    flops = 2 * len(train) * protocol.epochs * (2 * network.sizes[0] * 128 + 3 * 128 * 64 + 3 * 64)
    sheet = Sheet("Crime, one network of 50 epochs", ["how", "seconds a network", "ratio", "GFLOP/s", "table"])
    for name, times in [("together", together), *apart.items()]:
        each = min(times)
        ratio = each / best
        whole = cells * each
        table_time = f"{whole / 60:.1f} min" if whole >= 60 else f"{whole:.1f} s"
        rate = f"{flops / each / 1e9:,.0f}"
        sheet.rows.append([name, f"{each:.3g}", f"{ratio:.1f}", rate, table_time])
    text = (
        f"{trainer.platform} × {trainer.devices} ({jax.devices()[0].device_kind}; {cpu()}), load {before:.1f} "
        f"before and {load():.1f} after, commit {commit()}. {count} networks at once; the first call, with "
        f"compilation, took {first:.1f} s. Best of {rounds}. The table has {cells} networks."
    )
    console.print(sheet.rich(), text)
    kept = RESULTS.with_name(f"paper-{trainer.platform}.md")
    kept.write_text(f"{sheet.markdown()}\n{text}\n", encoding="utf-8")


if __name__ == "__main__":
    typer.run(main)
