"""Charge a ledger of 1,000,000 people, and one that 40 processes share while 30 of them are killed.

    python -m benchmarks.ledger

Prints processor time against writing the same ids to SQLite alone, in the same run, and the peak of memory.
"""

from __future__ import annotations

import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

import numpy as np

import labeldp as ldp

PEOPLE = 1_000_000
PROCESSES = 40
KILLS = 30
CHARGES = 5
"""Charges of each process."""

_JOB = """
import sys, labeldp as ldp
ledger = ldp.Ledger.open(sys.argv[1])
for number in range(int(sys.argv[3])):
    ledger.charge("labels", epsilon=0.25, person=[f"{sys.argv[2]}-{number}"], segment=f"s{number}")
    print("paid", flush=True)
"""


def write_alone(path: Path, ids: list[str]) -> float:
    """Return the processor time of writing ids, as they come, as a primary key."""
    begin = time.process_time()
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("PRAGMA synchronous=EXTRA")
        database.execute("CREATE TABLE ids (id TEXT PRIMARY KEY)")
        database.execute("BEGIN")
        database.executemany("INSERT INTO ids VALUES (?)", ((one,) for one in ids))
        database.execute("COMMIT")
    return time.process_time() - begin


def charge_people(folder: Path) -> list[str]:
    """Return the figures of two charges of many people: newcomers, and the same people again."""
    ids = [f"patient-{number:07d}" for number in np.random.default_rng(0).permutation(PEOPLE)]
    alone = write_alone(folder / "alone.db", ids)
    ledger = ldp.Ledger.open(folder / "people.db", limit=ldp.Budget(2.0), unit="person")
    figures = [f"{PEOPLE:,} ids written to SQLite alone: {alone:.2f} s"]
    for name in ("newcomers", "the same again"):
        begin = time.process_time()
        ledger.charge("labels", epsilon=0.5, person=ids)
        spent = time.process_time() - begin
        figures.append(f"charge of {name}: {spent:.2f} s, {spent / alone:.2f} times")
    return [*figures, f"peak memory: {_peak_mebibytes():.0f} MiB"]


def _peak_mebibytes() -> float:
    import resource  # noqa: PLC0415 (POSIX alone)

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def kill_processes(folder: Path) -> str:
    """Return what became of a ledger that processes share while most of them are killed."""
    path, chance = folder / "shared.db", random.Random(0)  # noqa: S311
    ldp.Ledger.open(path, limit=ldp.Budget(1.0), unit="person")
    command = [sys.executable, "-c", _JOB, str(path)]
    jobs = [
        subprocess.Popen([*command, str(job), str(CHARGES)], stdout=subprocess.PIPE, text=True)
        for job in range(PROCESSES)
    ]
    for job in jobs[:KILLS]:
        time.sleep(chance.uniform(0, 0.5))
        job.send_signal(signal.SIGKILL)
    paid = sum(job.communicate()[0].count("paid") for job in jobs)
    ledger = ldp.Ledger.open(path)
    charges, people = len(ledger.charges), sum(ledger.chain.people.values())
    ledger.backup(folder / "copy.db")  # compares the accounts with the records
    return (
        f"{PROCESSES} processes, {KILLS} kills: {paid} charges confirmed, {charges} in the ledger, "
        f"{people} people with {ledger.total} each"
    )


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        print(*charge_people(Path(place)), kill_processes(Path(place)), sep="\n")
