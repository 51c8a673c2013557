"""Many networks trained at once: `vmap` over trials, mechanisms and budgets, `scan` over steps, one compilation.

Networks of one trial see the same rows in the same order and differ in labels and in where they start. A step is
then a few large products instead of thousands of small ones. Networks are spread over all devices there are; on a
machine without an accelerator every core is one.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from numpy.typing import NDArray

from reproduction.networks import Network, Parameters
from reproduction.protocol import Protocol
from reproduction.workers import cores

Floats = NDArray[np.float32]
State = tuple[Parameters, Any]
_CACHE = 8
"""Networks at once on one core: their weights and activations stay in its cache."""
_BYTES = 16 << 30
_ALL, _NETWORKS, _LABELS = PartitionSpec(), PartitionSpec(None, "networks"), PartitionSpec(None, None, "networks")
"""What is the same on all devices, and where networks are spread over them."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Trials that train together: T trials of n rows with N networks each.

    Attributes
    ----------
    numbers, test_numbers : arrays, T × rows × columns
    ids, test_ids : arrays of int32, T × rows × categories
        Places in the one table of embeddings; no columns if there are no categories.
    labels : array, T × n × N
        What each network is trained on.
    test_labels : array, T × rows
        The true ones.
    orders : T seeds
        For the order of the rows.
    starts : T × N seeds
        For the networks' first weights.
    """

    numbers: Floats
    ids: NDArray[np.int32]
    labels: Floats
    test_numbers: Floats
    test_ids: NDArray[np.int32]
    test_labels: Floats
    orders: NDArray[np.uint32]
    starts: NDArray[np.uint32]


def _all_devices() -> list[Any]:
    """Return the devices to train on; without an accelerator, one for each core."""
    with contextlib.suppress(RuntimeError):  # JAX is in use already: take what there is
        jax.config.update("jax_num_cpu_devices", cores())
    return list(jax.local_devices())


def optimiser(protocol: Protocol) -> optax.GradientTransformation:
    """Return PyTorch's Adam or RMSProp with its weight decay, which is added to the gradient; rate 1."""
    step = (
        optax.scale_by_adam()
        if protocol.optimiser == "adam"
        else optax.scale_by_rms(decay=0.99, eps=1e-8, eps_in_sqrt=False)
    )
    return optax.chain(optax.add_decayed_weights(protocol.weight_decay), step)


def squared_error(
    network: Network, params: Parameters, numbers: jax.Array, ids: jax.Array, labels: jax.Array, used: jax.Array
) -> jax.Array:
    """Return the mean squared error over the rows that are used."""
    error = (network.predict(params, numbers, ids) - labels) ** 2
    return jnp.sum(used * error) / jnp.sum(used)


class Trainer:
    """Trains batches of one shape; the first one compiles.

    Parameters
    ----------
    network : Network
    protocol : Protocol
    rows, test_rows : int
        Training and test rows of a trial.
    """

    def __init__(self, network: Network, protocol: Protocol, rows: int, test_rows: int) -> None:
        self.network, self.protocol = network, protocol
        self.rows, self.test_rows = rows, test_rows
        self.steps = -(-rows // protocol.batch)
        # Several epochs a call: fewer calls from Python, and still some progress in between.
        self.epochs_a_call = max(k for k in range(1, 11) if protocol.epochs % k == 0)
        self._optimiser = optimiser(protocol)
        self._devices = _all_devices()
        self._mesh = Mesh(np.array(self._devices), ("networks",))
        share = partial(jax.shard_map, mesh=self._mesh, check_vma=False)
        shapes = jax.eval_shape(self._initial_state, jax.ShapeDtypeStruct((1, 1, 2), np.uint32))
        state = jax.tree.map(lambda part: _NETWORKS if part.ndim else _ALL, shapes)
        data = (_ALL, _ALL, _LABELS)
        self._start = jax.jit(share(self._initial_state, in_specs=(_NETWORKS,), out_specs=state))
        self._train = jax.jit(
            share(self._epochs, in_specs=(state, *data, _ALL, _ALL, _ALL), out_specs=state), donate_argnums=0
        )
        self._test = jax.jit(share(self._errors, in_specs=(state, _ALL, _ALL, _ALL), out_specs=_NETWORKS))

    @property
    def devices(self) -> int:
        """How many devices share the networks."""
        return len(self._devices)

    @property
    def platform(self) -> str:
        """Where it runs: cpu or gpu."""
        return str(self._devices[0].platform)

    def at_once(self, budget: int | None = None) -> int:
        """Return how many networks to train at once, given the bytes that they may take."""
        if budget is None and self.platform == "cpu":
            return _CACHE * self.devices
        if budget is None:
            stats = self._devices[0].memory_stats() or {}
            budget = min(_BYTES, int(0.6 * stats.get("bytes_limit", _BYTES))) * self.devices
        each = 4 * (self.rows + 6 * self.network.weights + 4 * self.protocol.batch * sum(self.network.sizes))
        fit = max(1, budget // each)
        return max(self.devices, fit - fit % self.devices)

    def fit(self, batch: Batch, progress: Callable[[int], None] = lambda epochs: None) -> NDArray[np.float64]:
        """Train all networks; return their test errors, T × N.

        N must be a multiple of `devices`. ``progress`` is called with the epochs done since the last call.
        """
        put = self._put
        with jax.default_matmul_precision("highest"):  # full float32 on every device
            data = put(batch.numbers), put(batch.ids), put(batch.labels, _LABELS)
            state = self._start(put(batch.starts, _NETWORKS))
            orders = put(batch.orders)
            rates, size = self.protocol.learning_rates(), self.epochs_a_call
            for first in range(0, self.protocol.epochs, size):
                state = self._train(state, *data, orders, put(rates[first : first + size]), put(np.int32(first)))
                jax.block_until_ready(state)
                progress(size)
            tests = map(self._in_batches, (batch.test_numbers, batch.test_ids, batch.test_labels))
            return np.asarray(self._test(state, *map(put, tests)), dtype=np.float64)

    def _put(self, array: Any, spec: PartitionSpec = _ALL) -> jax.Array:
        return jax.device_put(array, NamedSharding(self._mesh, spec))

    def _in_batches(self, array: NDArray[Any]) -> NDArray[Any]:
        """Return test rows in full batches; padding is not counted."""
        pieces = -(-self.test_rows // self.protocol.batch)
        room = [(0, 0)] * array.ndim
        room[1] = (0, pieces * self.protocol.batch - self.test_rows)
        return np.pad(array, room).reshape(array.shape[0], pieces, self.protocol.batch, *array.shape[2:])

    # ---- pure functions on one device's share ------------------------------------------------------

    def _initial_state(self, starts: jax.Array) -> State:
        params = jax.vmap(jax.vmap(lambda seed: self.network.init(jax.random.wrap_key_data(seed))))(starts)
        return params, self._optimiser.init(params)

    def _epochs(
        self,
        state: State,
        numbers: jax.Array,
        ids: jax.Array,
        labels: jax.Array,
        orders: jax.Array,
        rates: jax.Array,
        first: jax.Array,
    ) -> State:
        batch = self.protocol.batch

        def epoch(state: State, at: tuple[jax.Array, jax.Array]) -> tuple[State, None]:
            number, rate = at
            rows = jax.vmap(lambda seed: row_order(seed, number, self.rows, self.steps * batch))(orders)

            def step(state: State, k: jax.Array) -> tuple[State, None]:
                some = jax.lax.dynamic_slice_in_dim(rows, k * batch, batch, axis=1)
                take = jax.vmap(lambda table, at: table[at])
                x, own, y = take(numbers, some), take(ids, some), take(labels, some)
                return self._step(state, x, own, y, _used(k, batch, self.rows), rate), None

            return jax.lax.scan(step, state, jnp.arange(self.steps))[0], None

        return jax.lax.scan(epoch, state, (first + jnp.arange(rates.size), rates))[0]

    def _step(
        self,
        state: State,
        numbers: jax.Array,
        ids: jax.Array,
        labels: jax.Array,
        used: jax.Array,
        rate: jax.Array,
    ) -> State:
        """Take one step of every network; those of a trial see the same rows."""
        params, memory = state
        slope = jax.grad(partial(squared_error, self.network))
        of_trial = jax.vmap(slope, in_axes=(0, None, None, 1, None))
        slopes = jax.vmap(of_trial, in_axes=(0, 0, 0, 0, None))(params, numbers, ids, labels, used)
        change, memory = self._optimiser.update(slopes, memory, params)  # number by number: needs no vmap
        return jax.tree.map(lambda p, d: p - rate * d, params, change), memory

    def _errors(self, state: State, numbers: jax.Array, ids: jax.Array, labels: jax.Array) -> jax.Array:
        batch = self.protocol.batch

        def one(params: Parameters, numbers: jax.Array, ids: jax.Array, labels: jax.Array) -> jax.Array:
            def piece(total: jax.Array, at: Any) -> tuple[jax.Array, None]:
                k, some, own, truth = at
                error = (self.network.predict(params, some, own) - truth) ** 2
                return total + jnp.sum(_used(k, batch, self.test_rows) * error), None

            parts = (jnp.arange(numbers.shape[0]), numbers, ids, labels)
            return jax.lax.scan(piece, jnp.float32(0), parts)[0] / self.test_rows

        return jax.vmap(jax.vmap(one, in_axes=(0, None, None, None)))(state[0], numbers, ids, labels)


def _used(k: jax.Array, batch: int, rows: int) -> jax.Array:
    """Return 1 for each row of batch k, and 0 for padding."""
    return (k * batch + jnp.arange(batch) < rows).astype(jnp.float32)


def row_order(seed: jax.Array, epoch: jax.Array | int, rows: int, length: int) -> jax.Array:
    """Return the rows of one epoch in random order, and again from the first until ``length``."""
    order = jax.random.permutation(jax.random.fold_in(jax.random.wrap_key_data(seed), epoch), rows)
    return jnp.concatenate([order, order])[:length] if length <= 2 * rows else jnp.resize(order, (length,))


def as_key(seed: int) -> NDArray[np.uint32]:
    """Return a seed as a JAX key's data."""
    return np.array([seed >> 32 & 0xFFFFFFFF, seed & 0xFFFFFFFF], dtype=np.uint32)
