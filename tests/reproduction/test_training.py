"""Networks trained together are the networks that would be trained one at a time, and by hand."""

import math

import numpy as np
import pytest
from benchmarks.paper import OneAtATime

from reproduction.columns import Cell
from reproduction.networks import Network
from reproduction.protocol import split
from reproduction.run import batch_of, plan
from reproduction.train import Trainer, row_order
from reproduction.workers import make_labels, pool
from reproduction_cases import quick, small, tiny


def example(data, protocol, trials=2, columns=("laplace", "rp")):
    """Return a trainer, and a batch with the labels of some columns at two budgets."""
    table = tiny(columns, budgets=(1.0, 8.0), trials=trials, data=data, protocol=protocol)
    train, test = split(len(data.y), "housing", 0)
    trainer = Trainer(Network.of(data, protocol), protocol, len(train), len(test))
    (chunk,) = plan(table, 99, trainer.devices)
    with pool(data, protocol, 1):
        labels = [[make_labels(Cell(t, c.key, e)) for c, e in chunk.networks] for t in chunk.trials]
    return trainer, batch_of(table, chunk, labels)


def test_networks_with_categories_together_equal_networks_one_at_a_time():
    protocol = quick(optimiser="rmsprop", scale="standard")
    trainer, batch = example(small(70, categories=True), protocol)
    errors = trainer.fit(batch)
    assert errors.shape[0] == 2
    alone = OneAtATime(trainer.network, protocol, trainer.rows, scan=True)
    for trial in range(2):
        for k in (0, 1, 3):
            assert alone.fit(batch, trial, k) == pytest.approx(errors[trial, k], rel=1e-4)


def by_hand(network, protocol, batch, trial, k, rows):
    """Train in NumPy and float64, from the definitions: back-propagation, L2 and PyTorch's update rules."""
    import jax

    params = network.init(jax.random.wrap_key_data(batch.starts[trial, k]))
    layers = [[np.asarray(part, np.float64) for part in layer] for layer in params["layers"]]
    X, y = batch.numbers[trial].astype(np.float64), batch.labels[trial, :, k].astype(np.float64)
    memory = [[(np.zeros_like(p), np.zeros_like(p)) for p in layer] for layer in layers]
    elu = protocol.activation == "elu"
    count = 0
    for epoch, rate in enumerate(protocol.learning_rates().astype(np.float64)):
        order = np.asarray(row_order(batch.orders[trial], epoch, rows, rows))
        for first in range(0, rows, protocol.batch):
            some = order[first : first + protocol.batch]  # the last batch is smaller
            hs, zs = [X[some]], []
            for W, b in layers:
                zs.append(hs[-1] @ W.T + b)
                act = np.where(zs[-1] > 0, zs[-1], np.expm1(np.minimum(zs[-1], 0)) if elu else 0.0)
                hs.append(act if len(zs) < len(layers) else zs[-1])
            delta = 2 * (hs[-1] - y[some, None]) / len(some)
            count += 1
            for at in reversed(range(len(layers))):
                if at < len(layers) - 1:
                    inside = np.exp(np.minimum(zs[at], 0)) if elu else 0.0
                    delta = delta * np.where(zs[at] > 0, 1.0, inside)
                slopes = [delta.T @ hs[at], delta.sum(axis=0)]
                delta = delta @ layers[at][0]
                for part, raw in enumerate(slopes):
                    slope = raw + protocol.weight_decay * layers[at][part]
                    m, v = memory[at][part]
                    if protocol.optimiser == "adam":
                        m, v = 0.9 * m + 0.1 * slope, 0.999 * v + 0.001 * slope**2
                        step = (m / (1 - 0.9**count)) / (np.sqrt(v / (1 - 0.999**count)) + 1e-8)
                    else:
                        v = 0.99 * v + 0.01 * slope**2
                        step = slope / (np.sqrt(v) + 1e-8)
                    memory[at][part] = m, v
                    layers[at][part] = layers[at][part] - rate * step
    h = batch.test_numbers[trial].astype(np.float64)
    for at, (W, b) in enumerate(layers):
        h = h @ W.T + b
        if at < len(layers) - 1:
            h = np.where(h > 0, h, np.expm1(np.minimum(h, 0)) if elu else 0.0)
    return float(np.mean((h[:, 0] - batch.test_labels[trial]) ** 2))


@pytest.mark.parametrize(
    "protocol", [quick(), quick("code"), quick(optimiser="rmsprop")], ids=["text", "code", "rmsprop"]
)
def test_networks_are_what_the_definitions_say(protocol):
    data = small()
    trainer, batch = example(data, protocol, trials=1)
    errors = trainer.fit(batch)
    for k in (0, 2):
        expected = by_hand(trainer.network, protocol, batch, 0, k, trainer.rows)
        assert errors[0, k] == pytest.approx(expected, rel=2e-3)


def test_a_network_learns_from_true_labels():
    data = small(400)
    protocol = quick(epochs=50)
    trainer, batch = example(data, protocol, trials=1, columns=("rp",))
    batch.labels[0] = data.y[split(400, "housing", 0)[0]][:, None]
    assert trainer.fit(batch).max() < 0.5 * data.y.var()


def test_plans_have_one_shape_and_cover_every_cell_once():
    table = tiny(("laplace", "gaussian", "rp"), budgets=(1.0, 2.0, 8.0, math.inf), trials=6)
    cells = table.network_cells()
    assert len(cells) == 10
    for at_once, devices in ((1, 1), (3, 2), (4, 2), (10, 1), (25, 2), (1000, 4)):
        chunks = plan(table, at_once, devices)
        shapes = {(len(c.trials), len(c.networks) + c.padding) for c in chunks}
        assert len(shapes) == 1
        assert next(iter(shapes))[1] % devices == 0
        seen = [(t, column.key, e) for c in chunks for t in c.trials for column, e in c.networks]
        assert sorted(seen) == sorted((t, column.key, e) for t in range(6) for column, e in cells)
        assert len({c.name for c in chunks}) == len(chunks)


def test_memory_decides_how_many_train_at_once():
    data, protocol = small(), quick()
    trainer = Trainer(Network.of(data, protocol), protocol, 72, 18)
    assert trainer.at_once(1) == trainer.devices
    assert trainer.at_once(1 << 30) > 1000
    assert trainer.at_once(1 << 30) % trainer.devices == 0
