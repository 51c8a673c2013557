"""Load models with anything changed in their arrays, and predict with those that are accepted.

Run in a process of its own, ``python model_mutations.py FIRST COUNT``, so that a crash or an endless loop of
compiled code is seen as such. A mutation follows from its number: to repeat one, ask for that one. Printed at the
end are how many models were accepted and how many refused.
"""

import faulthandler
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa

import labeldp as ldp
import model_cases
from labeldp.learning import model_arrays, models

HANG = 120
"""Seconds after which a single model counts as endless; each takes some milliseconds."""

ODD = [0.0, -1.0, 1.0, 0.5, 7.0, 255.0, 256.0, 1e308, -1e308, 1e-320, 2.0**31, np.inf, -np.inf, np.nan]
DTYPES = ["f2", "f4", "f8", ">f8", "i4", "i8", "u1", "u4", "?", "c16", "U3", "S2", "O", "M8[s]", "i4,f8"]


def odd_values(array, rng):
    """Set some elements to odd values of the same dtype, or to some that are near."""
    flat = array.reshape(-1)
    at = rng.integers(0, flat.size, rng.integers(1, 4))
    if array.dtype.kind == "f":
        flat[at] = rng.choice(ODD)
    else:
        ends = np.iinfo(array.dtype)
        value = int(flat[at[0]])
        odd = [value - 1, value + 1, 0, 1, 127, 2**31, ends.min, ends.max]
        flat[at] = min(max(odd[rng.integers(8)], ends.min), ends.max)
    return array


def other_shape(array, rng):
    flat = array.reshape(-1)
    shapes = [flat, array[None], flat[: flat.size // 2], np.append(flat, flat[0]), flat[:0], np.tile(array, 2)]
    return [*shapes, array.T.copy(), np.asfortranarray(array)][rng.integers(8)]


CHANGES = [
    *(odd_values, odd_values, odd_values, other_shape),
    lambda array, rng: rng.permutation(array.reshape(-1)).reshape(array.shape),
    lambda array, rng: array.astype(rng.choice(DTYPES)),
    lambda array, rng: np.full(array.shape, rng.choice(ODD)).astype(array.dtype),
]


def other_trees(arrays, rng):
    """Return trees of other nodes, most of which lead on as they should: these are followed."""
    sizes, total = arrays["trees_sizes"], arrays["trees_value"].size
    start = np.repeat(np.cumsum(sizes) - sizes, sizes)
    size, node = np.repeat(sizes, sizes), np.arange(total) - start
    ahead = {f"trees_{side}": rng.integers(node + 1, np.maximum(size, node + 2)) for side in ("left", "right")}
    changed = {name: values.astype("u4") for name, values in ahead.items()}
    changed["trees_is_leaf"] = np.maximum(node == size - 1, rng.random(total) < 0.3).astype("u1")
    changed["trees_feature_idx"] = rng.integers(0, arrays["public_center"].size, total)
    changed["trees_num_threshold"] = rng.choice(ODD[:-1], total)
    changed["trees_value"] = rng.choice([-1e308, 1e308, 0.0, 3.0], total)
    if rng.random() < 0.5:
        name = rng.choice(sorted(changed))
        changed[name] = odd_values(changed[name], rng)
    return {**arrays, **changed}


def mutated(arrays, rng):
    """Return a model's arrays with one to three of them changed, gone, renamed or added."""
    arrays = {name: array.copy() for name, array in arrays.items()}
    if "trees_leaf" in arrays and rng.random() < 0.3:
        arrays = other_trees(arrays, rng)
        if rng.random() < 0.5:
            return arrays
    for _ in range(rng.integers(1, 4)):
        name = rng.choice(sorted(arrays))
        how = rng.integers(24)
        if how == 0:
            del arrays[name]
        elif how == 1:
            other = rng.choice([*sorted(arrays), *sorted(model_arrays.MODEL_ARRAYS), "more", "../x", ""])
            arrays[other] = arrays[name]
        elif arrays[name].dtype.kind in "fiu" and arrays[name].size:
            arrays[name] = CHANGES[how % len(CHANGES)](arrays[name], rng)
    return arrays


def wide(columns):
    """Return a model of so many columns, and its encoder."""
    values = np.random.default_rng(0).normal(size=(columns, 60))
    table = pa.table({f"c{k}": column for k, column in enumerate(values)})
    encoder = ldp.tables.TableEncoder.fit(table, table.column_names)
    model = ldp.ModelReleaseRegressor(epsilon=1.0, bounds=model_cases.BOUNDS)
    return model.fit(encoder.transform(table), np.linspace(0, 5, 60)), encoder


def kinds():
    """Return a model of each kind and its encoder; trees are the most dangerous, and come more often."""
    own = model_cases.encoder()
    trees, plain = (model_cases.with_trees(), own), (model_cases.fitted(), own)
    return [trees, trees, trees, plain, wide(25), wide(310)]


def stated_hash(cards, path):
    """Return the hash that a model's card states for one of its files."""
    card = cards[(path.parent / "card.json").read_text()]
    return card.content["files"][path.name]


@np.errstate(all="ignore")
def main(first, count):
    warnings.simplefilter("ignore")
    place, models_of = Path(tempfile.mkdtemp()), kinds()
    folders = [model_cases.saved(model, place / f"model {k}", own) for k, (model, own) in enumerate(models_of)]
    cards = {text: models.Card.parse(text) for text in ((each / "card.json").read_text() for each in folders)}
    models.Card.parse = cards.__getitem__  # checked once: what changes here are arrays
    models.sha256 = lambda path, limit=None: stated_hash(cards, path)
    whole = [model_cases.arrays_in(folder) for folder in folders]
    accepted = 0
    for number in range(first, first + count):
        faulthandler.dump_traceback_later(HANG, exit=True)
        print(number, file=sys.stderr)
        rng = np.random.default_rng(number)
        which = int(rng.integers(len(folders)))
        np.savez(folders[which] / "model.npz", **mutated(whole[which], rng))
        X = rng.choice([0.0, 1.0, -1e100, 1e100, 3.5], (5, models_of[which][1].width))
        try:
            predicted = models.load_model(folders[which]).predict_numbers(X)
        except ldp.LabelDPError:
            continue
        low, high = model_cases.BOUNDS
        assert ((predicted >= low) & (predicted <= high)).all(), number
        accepted += 1
    faulthandler.cancel_dump_traceback_later()
    print(f"{accepted} accepted, {count - accepted} refused")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
