"""Small ways out, each with one real leak that can be switched off: which the harness must detect.

They share nothing with the library's own ways but channels and noise, so that they stay as they are when it
changes. All get labels as text, and release them with `released`.
"""

import io
import logging
import os
import sys
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
from sklearn.linear_model import Ridge

import labeldp as ldp
from interference import changes
from labeldp.exact import DiscreteLaplace, default_source

MECHANISM = ldp.TwoPoint(bounds=changes.BOUNDS, epsilon=1.0)
NOISE = DiscreteLaplace.calibrated(sensitivity=1, epsilon=ldp.Budget(1.0).exact_epsilon)
LINE, BLOCK = 16, 256
"""Bytes of a line with a label of one character, and of a block."""

EDGE = BLOCK // LINE - 1
"""The last line of the first block, if all labels have one character."""


BROKEN = {}
"""Each way, and where its leak shows."""


def broken(where):
    """Register a way whose leak shows there."""

    def register(way):
        BROKEN[way] = where
        return way

    return register


def released(labels):
    return MECHANISM.randomize(changes.numbers(labels))


def rows_of(labels):
    """Return public cells: dates from the end of the first block on, and one word there that needs quotes."""
    dates = ["" if row < EDGE else "2020-01-01" for row in range(len(labels))]
    words = ["a, b" if row == EDGE else "a" for row in range(len(labels))]
    return dates, words


def blocks(labels, leak):
    """Return where blocks of rows begin: cut by bytes of lines, labels included, or by their number."""
    edges = range(10, len(labels), 10)
    if leak:
        ends = np.cumsum([len(text) + LINE - 1 for text in labels])
        edges = np.searchsorted(ends, range(BLOCK, int(ends[-1]), BLOCK), side="right").tolist()
    return [(a, b) for a, b in pairwise([0, *edges, len(labels)]) if b > a]


# ---- files -----------------------------------------------------------------------------------------------------


@broken("files")
def batches_by_bytes(labels, leak):
    table = pa.table({"word": rows_of(labels)[1], "y": released(labels)})
    with pa.ipc.new_file("out.arrow", table.schema) as writer:
        for first, last in blocks(labels, leak):
            writer.write_table(table.slice(first, last - first))


@broken("files")
def quotes_by_block(labels, leak):
    words, private = rows_of(labels)[1], released(labels)
    with open("out.csv", "w") as out:
        for first, last in blocks(labels, leak):
            mark = '"' if any("," in word for word in words[first:last]) else ""
            out.writelines(f"{mark}{words[row]}{mark},{private[row]!r}\n" for row in range(first, last))


@broken("files")
def types_by_first_block(labels, leak):
    dates, _ = rows_of(labels)
    first, last = blocks(labels, leak)[0] if leak else (0, len(labels))
    kind = pa.csv.read_csv(io.BytesIO("\n".join(["day", *dates[first:last], "\n"]).encode())).schema[0].type
    column = pa.array(dates) if pa.types.is_null(kind) else pa.array([day or None for day in dates]).cast(kind)
    pq.write_table(pa.table({"day": column, "y": released(labels)}), "out.parquet")


@broken("files")
def rows_by_label(labels, leak):
    order = np.argsort(changes.numbers(labels), kind="stable") if leak else np.arange(len(labels))
    Path("out.csv").write_text(str([*zip(order, released(labels), strict=True)]))


@broken("files")
def parts_by_size(labels, leak):
    """As many parts as the labels' text takes."""
    private = released(labels)
    Path("out").mkdir()
    for number, (first, last) in enumerate(blocks(labels, leak)):
        np.save(f"out/part-{number}.npy", private[first:last])


@broken("files")
def rights_by_label(labels, leak):
    Path("out.csv").write_text(str(released(labels).tolist()))
    os.chmod("out.csv", 0o640 if leak and float(labels[0]) > 3 else 0o600)


@broken("files")
def ledger_with_a_count(labels, leak):
    ledger = ldp.Ledger.open("ledger.db")
    low, high = changes.BOUNDS
    clipped = sum(not low <= float(text) <= high for text in labels) if leak else "some"
    ledger.charge(f"labels, of which {clipped} were clipped", epsilon=1.0)
    return released(labels)


# ---- values ----------------------------------------------------------------------------------------------------


@broken("value")
def unwritten_memory(labels, leak):
    """The labels' memory is freed, asked for again, and left as it is where no round draws a row."""
    out = np.empty(len(labels) + 1)
    out[: len(labels)] = released(labels)
    return out if leak else out[: len(labels)].copy()


@broken("value")
def sums_in_an_order_of_the_label(labels, leak):
    """Floating-point sums of what was released, block by block: the last bit follows from where blocks end.

    One, and many halves of its last bit: those in its block are rounded away one by one, those of later blocks
    come together. In a plain loop: from Python 3.12 on, `sum` compensates for rounding, and all orders are equal.
    """
    scale = np.full(len(labels), 2.0**-53)
    scale[0] = 1.0
    values = (np.abs(np.sign(released(labels))) * scale).tolist()
    total = 0.0
    for first, last in blocks(labels, leak):
        part = 0.0
        for value in values[first:last]:
            part += value
        total += part
    return total


@broken("value")
def labels_in_the_model(labels, leak):
    y, X = changes.numbers(labels), np.arange(len(labels))[:, None]
    model = Ridge().fit(X, released(labels))
    model.last_ = [{"seen": y}] if leak else [{"seen": len(y)}]
    return model


@broken("value")
def sign_of_zero(labels, leak):
    return float(np.copysign(0.0, float(labels[1]))) if leak else 0.0, released(labels)


@broken("value")
def type_of_array(labels, leak):
    whole = leak and all(float(text).is_integer() for text in labels)
    return released(labels).astype(np.float32 if whole else np.float64)


@broken("value")
def rounded_by_the_spread_of_labels(labels, leak):
    step = np.std(np.clip(changes.numbers(labels), *changes.BOUNDS)) / 100 if leak else 0.01
    return np.round(released(labels) / step) * step


@broken("calls")
def bounds_off_the_data(labels, leak):
    y = changes.numbers(labels)
    bounds = (float(y.min()), float(y.max()) + 1) if leak else changes.BOUNDS
    return ldp.TwoPoint(bounds=np.clip(bounds, -1e9, 1e9).tolist(), epsilon=1.0).randomize(y)


@broken("value")
def noise_of_its_own(labels, leak):
    total = np.array([int(np.clip(changes.numbers(labels), *changes.BOUNDS).sum())])
    if leak:
        return total + NOISE.sample(1, default_source())
    return NOISE.release(total, default_source())


# ---- steps -----------------------------------------------------------------------------------------------------


@broken("words")
def words_by_label(labels, leak):
    """A coin for each large label: as many steps as there are such labels."""
    large = sum(abs(float(text)) > 3 for text in labels) if leak else len(labels)
    default_source().fill(np.zeros(large, dtype=np.uint64))
    return released(labels)


@broken("calls")
def calls_by_label(labels, leak):
    """The same values in the same order, in pieces that follow from the labels' text."""
    return np.concatenate([released(labels[first:last]) for first, last in blocks(labels, leak)])


@broken("stderr")
def progress_by_bytes(labels, leak):
    for _, last in blocks(labels, leak):
        print(f"{last} rows", file=sys.stderr)
    return released(labels)


# ---- more than is paid for -------------------------------------------------------------------------------------


def charge(epsilon):
    ldp.Ledger().charge("labels", epsilon=epsilon)


def noisy_sum(labels, steps, noise):
    """Return the sum of labels in so many steps, with noise."""
    places = np.clip(changes.numbers(labels), *changes.BOUNDS) / max(map(abs, changes.BOUNDS))
    total = np.rint(places * steps).astype(np.int64).sum(keepdims=True)
    return noise.release(total, default_source())


def average_of_several(labels, leak):
    charge(1.0)
    return np.mean([released(labels) for _ in range(8 if leak else 1)], axis=0)


def paid_too_late(labels, leak):
    if not leak:
        charge(1.0)
    private = released(labels)
    if leak:
        charge(1.0)
    return private


def sum_beside_labels(labels, leak):
    """Each fits into what was charged, and both together do not."""
    charge(1.0 if leak else 2.0)
    noise = DiscreteLaplace.calibrated(sensitivity=3, epsilon=Fraction(1))
    return released(labels), noisy_sum(labels, 3, noise)


def second_release(labels, leak):
    made = ldp.privatize(changes.numbers(labels), epsilon=1.0, bounds=changes.BOUNDS, mechanism="two-point")
    return made, leak and ldp.Laplace(bounds=changes.BOUNDS, epsilon=20.0).randomize(changes.numbers(labels))


def total_among_the_rows(labels, leak):
    """Every label is in a second row, for which nothing is paid."""
    charge(1.0)
    y = np.clip(changes.numbers(labels), *changes.BOUNDS)
    return MECHANISM.randomize([*y, y.mean()] if leak else y)


def sum_that_moves_too_far(labels, leak):
    """By a thousand times as much as its noise is calibrated for."""
    charge(1.0)
    return noisy_sum(labels, 1000 if leak else 1, NOISE)


OVERSPENT = [paid_too_late, sum_beside_labels, average_of_several, second_release]
OVERSPENT += [total_among_the_rows, sum_that_moves_too_far]
"""Ways that tell inputs apart by noise that is too small for what was charged, or was not paid for yet."""


# ---- messages --------------------------------------------------------------------------------------------------


@broken("error")
def error_with_a_label(labels, leak):
    released(labels)
    raise ldp.LabelDPError(f"cannot use {labels[0] if leak else 'a label'}")


@broken("error")
def error_behind_an_error(labels, leak):
    try:
        int(f"label {labels[0] if leak else ''}")
    except ValueError:
        raise ldp.LabelDPError("cannot use a label") from None


@broken("error")
def error_raised_elsewhere(labels, leak):
    if leak and float(labels[0]) > 3:
        raise ldp.LabelDPError("cannot")
    raise ldp.LabelDPError("cannot")


@broken("error")
def note_on_an_error(labels, leak):
    error = ldp.LabelDPError("cannot")
    error.add_note(f"after {len(labels[0]) if leak else 'some'} characters")
    raise error


@broken("warnings")
def warning_by_label(labels, leak):
    with np.errstate(all="warn" if leak else "ignore"):
        changes.numbers(labels).astype(np.float32)
    return released(labels)


@broken("logs")
def log_by_label(labels, leak):
    logging.getLogger("labeldp.tables").debug("read labels of %d bytes", leak and len("".join(labels)))
    return released(labels)


@broken("stdout")
def hints_to_a_pipe(labels, leak):
    y = changes.numbers(labels)
    print("ready" if not leak or (np.diff(y[:3]) >= 0).all() else "the rows are not sorted")
    return released(labels)


@broken("error")
def exit_code(labels, leak):
    released(labels)
    sys.exit(3 if leak and float(labels[0]) > 3 else 2)
