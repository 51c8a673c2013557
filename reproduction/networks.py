"""The paper's networks in JAX: three fully connected layers, with embeddings for categories.

Layers are applied to columns, W @ h: units first, rows last. For many networks on the same rows the first layer is
then one large matrix product, and the others are batches of products without a transpose between them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from reproduction.categories import categories_of
from reproduction.datasets.dataset import Dataset
from reproduction.protocol import Protocol

Parameters = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Network:
    """The shape of a network."""

    numbers: int
    vocabulary: int
    categories: int
    hidden: tuple[int, ...]
    embedding: int
    activation: str

    @classmethod
    def of(cls, data: Dataset, protocol: Protocol) -> Network:
        """Return the paper's network for a data set."""
        _, sizes = categories_of(data)
        return cls(
            numbers=data.X.shape[1],
            vocabulary=sum(sizes),
            categories=len(sizes),
            hidden=protocol.hidden,
            embedding=protocol.embedding,
            activation=protocol.activation,
        )

    @property
    def sizes(self) -> tuple[int, ...]:
        """Widths of the layers, input first."""
        return (self.numbers + self.categories * self.embedding, *self.hidden, 1)

    @property
    def weights(self) -> int:
        """How many numbers one network has."""
        layers = sum((a + 1) * b for a, b in zip(self.sizes[:-1], self.sizes[1:], strict=True))
        return layers + self.vocabulary * self.embedding

    def init(self, key: jax.Array) -> Parameters:
        """Return random parameters, distributed as PyTorch's defaults: U(±1/√inputs), embeddings N(0, 1)."""
        params: Parameters = {"layers": []}
        for inputs, outputs in zip(self.sizes[:-1], self.sizes[1:], strict=True):
            key, for_weight, for_bias = jax.random.split(key, 3)
            reach = inputs**-0.5
            weight = jax.random.uniform(for_weight, (outputs, inputs), minval=-reach, maxval=reach)
            bias = jax.random.uniform(for_bias, (outputs,), minval=-reach, maxval=reach)
            params["layers"].append((weight, bias))
        if self.categories:
            params["embedding"] = jax.random.normal(key, (self.vocabulary, self.embedding))
        return params

    def predict(self, params: Parameters, numbers: jax.Array, ids: jax.Array) -> jax.Array:
        """Return a prediction for each row; ``ids`` are places in the one table of all embeddings."""
        inputs = numbers
        if self.categories:
            embedded = params["embedding"][ids].reshape(ids.shape[0], -1)
            inputs = jnp.concatenate([embedded, numbers], axis=1)
        activate = jax.nn.relu if self.activation == "relu" else jax.nn.elu
        h = inputs.T
        for weight, bias in params["layers"][:-1]:
            h = activate(weight @ h + bias[:, None])
        weight, bias = params["layers"][-1]
        return (weight @ h + bias[:, None])[0]
