"""Commands as people type them, run in this process, and a table for them."""

import numpy as np
import pyarrow as pa
from typer.testing import CliRunner

from labeldp.app.cli import app


def invoke(*words, columns=200, **variables):
    """Run a command, which ends without a traceback, and return its exit code and output."""
    environment = {"COLUMNS": str(columns), **variables}
    done = CliRunner().invoke(app, [str(word) for word in words], env=environment)
    assert done.exception is None or isinstance(done.exception, SystemExit), (words, done.exc_info)
    assert "Traceback" not in done.output, done.output
    return done


def run(*words, code=0, **options):
    """Run a command that must end with a code, and return what it said, lines joined, and wrote."""
    done = invoke(*words, **options)
    assert done.exit_code == code, (done.output, done.exception)
    return done


def with_options(words, *options):
    """Return the words of a command with options in place of those of the same names."""
    kept, is_replaced = [], False
    for word in words:
        if str(word).startswith("-"):
            is_replaced = word in options
        if not is_replaced:
            kept.append(word)
    return [*kept, *options]


def flat(text):
    """Return a text in one line."""
    return " ".join(text.split())


def said(*words, **options):
    """Run a command, and return all that it said, in one line."""
    return flat(run(*words, **options).output)


def files_in(folder):
    """Return the names of what lies in a folder."""
    return sorted(path.name for path in folder.iterdir())


def homes(rows=400, seed=0):
    """Return a table with a column of each kind, and prices from about 1 to 4 that they predict."""
    rng = np.random.default_rng(seed)
    area, town = rng.normal(size=rows), rng.choice(["York", "Bath", "Ely"], rows)
    price = 2.5 + np.tanh(area) + 0.7 * (town == "York") + rng.normal(size=rows) * 0.1
    return pa.table(
        {
            "id": [f"home {k}" for k in range(rows)],
            "area": pa.array(area, mask=rng.random(rows) < 0.05),
            "town": town,
            "lift": rng.random(rows) < 0.5,
            "price": price,
        }
    )
