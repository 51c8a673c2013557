"""Workers that are killed at a random moment of their work, and what must hold in their folder afterwards.

Children are forked from one process that has imported everything, so that hundreds of kills take seconds; each
does real work in a folder until it is killed, and says + after each release that it finished.
"""

import contextlib
import json
import os
import random
import signal
import sqlite3
import sys
import time
from itertools import takewhile
from subprocess import PIPE, Popen

import numpy as np
import pyarrow as pa

import labeldp as ldp
from labeldp.app.card_check import verify_files

EPSILON = 0.125
WORKER = """
import json, os, shutil, sqlite3, sys, tempfile, time
from pathlib import Path
import numpy as np
import pyarrow as pa
import labeldp as ldp
import labeldp.app.cli.privatize, labeldp.app.file_release, labeldp.accounts.ledger_file
from labeldp.tables.arrow import arrow
from labeldp._atomic import atomic_file
from labeldp.app.cli import app

LABELS = np.linspace(1, 4, 60)
FEATURES = LABELS[:, None]
E, BOUNDS = %r, (0.0, 5.0)
ENCODER = ldp.tables.TableEncoder.fit(pa.table({"id": np.arange(60.0)}), ["id"])

def privatize(folder, number, ledger):
    release = ldp.privatize(LABELS, epsilon=E, bounds=BOUNDS, mechanism="two-point", ledger=ledger)
    with atomic_file(f"{folder}/{number}.npz") as draft, open(draft, "wb") as stream:
        np.savez(stream, labels=release.labels, card=np.array(release.to_card()))

def fit(folder, number, ledger):
    quick = dict(rounds=1, mechanism="two-point")  # "auto" takes ten times as long
    model = ldp.LabelReleaseRegressor(epsilon=E, bounds=BOUNDS, ledger=ledger, **quick).fit(FEATURES, LABELS)
    model.release_.save(f"{folder}/{number}.npz")

def replaced(folder, number, ledger):
    from labeldp.learning.models import model_folder, write_model
    fitted = ldp.ModelReleaseRegressor(epsilon=E, bounds=BOUNDS, ledger=ledger).fit(FEATURES, LABELS)
    with model_folder(f"{folder}/latest.model", force=True) as draft:
        write_model(fitted, ENCODER, draft, label="price")

def command(folder, number, ledger, *more):
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    order = ["--label", "price", "--bounds", "0", "5", "--epsilon", str(E)]
    order += more or ["--mechanism", "two-point"]
    order += ["--ledger", f"{folder}/ledger", "-o", f"{folder}/{number}.csv"]
    app(["privatize", f"{folder}/in.tsv", *order], standalone_mode=False)

def modelled(folder, number, ledger):
    command(folder, number, ledger, "--for", "training")

def wait_for_the_kill():
    os.write(1, b"waits\\n")
    time.sleep(600)

def pays_late(folder, number, ledger):
    privatize(folder, number, ldp.Ledger())
    wait_for_the_kill()
    ledger.charge("labels", epsilon=E)

def writes_in_place(folder, number, ledger):
    release = ldp.privatize(LABELS, epsilon=E, bounds=BOUNDS, mechanism="two-point", ledger=ledger)
    with open(f"{folder}/{number}.npz", "wb") as stream:
        wait_for_the_kill()
        np.savez(stream, labels=release.labels, card=np.array(release.to_card()))

def replaces_in_place(folder, number, ledger):
    from labeldp.learning.models import write_model
    fitted = ldp.ModelReleaseRegressor(epsilon=E, bounds=BOUNDS, ledger=ledger).fit(FEATURES, LABELS)
    target = Path(f"{folder}/latest.model")
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir()
    write_model(fitted, ENCODER, target, label="price")
    (target / "card.json").unlink()
    wait_for_the_kill()

def locks_with_a_file(folder, number, ledger):
    os.close(os.open(f"{folder}/ledger.lock", os.O_CREAT | os.O_EXCL))
    privatize(folder, number, ledger)
    wait_for_the_kill()
    os.unlink(f"{folder}/ledger.lock")

def child_keeps_the_lock(folder, number, ledger):
    if not os.fork():
        sqlite3.connect(f"{folder}/ledger", isolation_level=None).execute("BEGIN IMMEDIATE")
        os.write(1, b"waits\\n")
        time.sleep(20)
        os._exit(0)
    time.sleep(600)

# What is imported only when used must be there before the fork, or every child would import it again.
arrow()
with tempfile.TemporaryDirectory() as warm:
    fit(warm, 0, ldp.Ledger())
    replaced(warm, 1, ldp.Ledger())

def work(kind, folder, number):
    os.write(1, b"%%d\\n" %% os.getpid())
    ledger = ldp.Ledger.open(f"{folder}/ledger", limit=ldp.Budget(1000))
    while True:
        globals()[kind](folder, number, ledger)
        os.write(1, b"+\\n")
        number += 1

for line in sys.stdin:
    child = os.fork()
    if not child:
        try:
            work(*json.loads(line))
        except BaseException as error:
            print(repr(error), file=sys.stderr, flush=True)
        finally:
            os._exit(1)
    os.waitpid(child, 0)
    os.write(1, b"end\\n")
"""


class Workers(Popen):
    """Starts a worker, kills it at a random moment of its work, and counts what it had finished."""

    def killed(self, moments, kind, folder, start):
        self.stdin.write(json.dumps([kind, str(folder), start]).encode() + b"\n")
        self.stdin.flush()
        process = int(self.stdout.readline())
        finished, begun = 0, time.perf_counter()
        for _ in range(moments.choice([0, 0, 1, 2])):
            line = self.stdout.readline()
            if line == b"waits\n":  # of a broken worker
                break
            assert line == b"+\n", "the worker failed by itself"
            finished += 1
        if finished:
            self.unit = (time.perf_counter() - begun) / finished
        time.sleep(moments.uniform(0, 1.2 * getattr(self, "unit", 0.05)))
        os.kill(process, signal.SIGKILL)
        return finished + list(takewhile(b"end\n".__ne__, self.stdout)).count(b"+\n")


def start_workers():
    """Return the process that forks workers; use it in a with statement."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-W", "ignore", "-c", WORKER % EPSILON]
    return Workers(command, stdin=PIPE, stdout=PIPE, env=environment)


LEFT = (".part", ".old", ".card.json")
"""How the names of drafts end, of what is being replaced, and of cards, which come before their tables."""


def check(folder, finished, seen):
    """Hold a folder to the promises: whole files, all of them paid for, a ledger free to use, and no lock."""
    with contextlib.closing(sqlite3.connect(folder / "ledger", isolation_level=None, timeout=0)) as other:
        other.execute("BEGIN EXCLUSIVE")  # no lock was left behind, in the kernel …
    ledger = ldp.Ledger.open(folder / "ledger")
    outputs = [each for ending in ("npz", "csv", "model") for each in folder.glob(f"*.{ending}")]
    known = {"ledger", "ledger-journal", "in.tsv", *(path.name for path in outputs)}
    strange = {each.name for each in folder.iterdir() if not each.name.endswith(LEFT)} - known
    assert not strange, f"left behind: {strange}"  # … or as a file
    for path in set(outputs) - seen:
        whole(path)
        if path.name != "latest.model":  # which is another one each time
            seen.add(path)
    if finished and any(folder.glob("latest.model*")) and not (folder / "latest.model").exists():
        assert any(is_model(each) for each in folder.glob("latest.model.*.old"))
    spent = ledger.total.epsilon
    replaced = any(folder.glob("latest.model*"))
    assert finished <= len(outputs) or replaced
    assert max(len(outputs), finished) * EPSILON <= spent * (1 + 1e-12)
    return max(len(outputs), finished), round(spent / EPSILON)


def whole(path):
    """Read an output to the end, and hold it to its card."""
    if path.suffix == ".csv":
        card = path.with_name(f"{path.name}.card.json").read_text()
        done = verify_files(card, file=path)
        assert [c.holds for c in done.checks if c.name in ("file", "rows")] == [True, True]
    elif path.suffix == ".model":
        assert ldp.load_model(path).predict(pa.table({"id": np.arange(3.0)})).shape == (3,)
    else:
        with np.load(path, allow_pickle=False) as stored:
            assert stored["labels"].shape == (60,)
            assert json.loads(str(stored["card"]))["schema"].startswith("labeldp.")


def is_model(path):
    try:
        ldp.load_model(path)
    except (OSError, ldp.LabelDPError):
        return False
    return True


def rounds_of_killing(workers, kind, folder, kills):
    """Kill a worker again and again in one folder, where the next goes on; return releases and payments."""
    moments = random.Random(kind)
    (folder / "in.tsv").write_text("id\tprice\n" + "".join(f"{k}\t{1 + k % 4}\n" for k in range(60)))
    finished = outputs = paid = 0
    seen = set()
    for kill in range(kills):
        finished += workers.killed(moments, kind, folder, start=1000 * kill)
        if (folder / "ledger").exists():
            outputs, paid = check(folder, finished, seen)
    ldp.Ledger.open(folder / "ledger").charge("still usable", epsilon=EPSILON)
    return finished, outputs, paid
