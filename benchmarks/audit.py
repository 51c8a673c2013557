"""Long audits: other libraries, our mechanisms over 20 seeds, and whole pipelines: ``python -m benchmarks.audit``.

Writes benchmarks/audit.md. The other libraries run in ``.venv-peers`` (``make bench`` builds it); without it their
table is left out. All of it takes a quarter of an hour on two idle cores; ``--part`` runs one table.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.progress import track
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.neighbors import KNeighborsRegressor

import labeldp as ldp
from benchmarks.audit_pipelines import BOUNDS, BROKEN, PIPELINES, number, pipelines
from benchmarks.report import Sheet, commit, cpu
from labeldp.evidence import canary_labels
from labeldp.exact.word_sources import SecureWords

HERE = Path(__file__).parent
PEER_PYTHON = HERE.parent / ".venv-peers" / "bin" / "python"
OUT = HERE / "audit.md"
SEEDS = 20
DELTA = 1e-5
EPSILONS = (0.1, 1.0, 4.0)

# ---- our mechanisms ----------------------------------------------------------------------------------------


def mechanisms(epsilon: float) -> list[ldp.mechanisms.Mechanism]:
    prior = ldp.Histogram(np.linspace(*BOUNDS, 11), [1, 3, 6, 8, 7, 5, 3, 2, 1, 1])
    return [
        ldp.RPWithPrior(interval=BOUNDS, zeta=1.5, epsilon=epsilon),
        ldp.Laplace(bounds=BOUNDS, epsilon=epsilon),
        ldp.Staircase(bounds=BOUNDS, epsilon=epsilon),
        ldp.Gaussian(bounds=BOUNDS, epsilon=epsilon, delta=DELTA),
        ldp.TwoPoint(bounds=BOUNDS, epsilon=epsilon),
        ldp.RROnBins.design(prior, epsilon),
        ldp.Unbiased.design(prior, epsilon, size=32),
    ]


def ours(samples: int, console: Console) -> Sheet:
    columns = ["mechanism", *(f"ε = {epsilon:g}" for epsilon in EPSILONS), "no violation"]
    sheet = Sheet(f"Our mechanisms: ε is at least, of {SEEDS} audits of {samples:,} samples a label", columns)
    sure = 1 - 1e-6 / (3 * 7 * SEEDS)
    for kinds in track(list(zip(*map(mechanisms, EPSILONS), strict=True)), console=console, transient=True):
        cells, passed = list[str](), 0
        for mechanism in kinds:
            found = [ldp.audit(mechanism, samples=samples, confidence=sure) for _ in range(SEEDS)]
            bounds = [one.epsilon for one in found]
            cells.append(f"{min(bounds):.2g} to {number(max(bounds))}")
            passed += sum(not one.detected for one in found)
        sheet.rows.append([type(kinds[0]).__name__, *cells, f"{passed} of {len(EPSILONS) * SEEDS}"])
    return sheet


# ---- one fit -----------------------------------------------------------------------------------------------


def fits(rows: int) -> Sheet:
    """Audit one fit or release of each kind, by as many canaries as a tenth of its rows."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, 5))
    y = np.clip(2.5 + 0.6 * (X[:, 0] + np.sin(X[:, 1])) + 0.3 * rng.normal(size=rows), *BOUNDS)
    canaries = np.column_stack([rng.choice(column, rows // 10) for column in X.T])
    coins = canary_labels(rows // 10, BOUNDS)
    everything, labels = np.vstack([X, canaries]), np.append(y, coins)
    sheet = Sheet(
        f"One fit of {rows:,} rows, and {coins.size:,} canaries in it, 95 % confidence",
        ["released", "claimed ε", "right guesses", "measured ≥", "verdict"],
    )

    def add(name: str, claim: float, released: np.ndarray) -> None:
        found = ldp.audit_fit(released[-coins.size :], coins, epsilon=claim)
        guesses = f"{found.right:,} of {found.guesses:,}"
        verdict = "VIOLATION" if found.detected else "none detected"
        sheet.rows.append([name, f"{claim:g}", guesses, number(found.epsilon), verdict])

    for epsilon in (1.0, 4.0):
        ledger = ldp.Ledger()
        model = ldp.ModelReleaseRegressor(epsilon=epsilon, bounds=BOUNDS, ledger=ledger)
        add("ModelReleaseRegressor", epsilon, model.fit(everything, labels).predict(everything))
        for kind, features in (("private labels", None), ("private labels that know X", everything)):
            release = ldp.privatize(labels, X=features, epsilon=epsilon, bounds=BOUNDS, ledger=ldp.Ledger())
            add(kind, epsilon, release.labels)
    broken = ldp.privatize(labels, epsilon=8.0, bounds=BOUNDS, ledger=ldp.Ledger())
    add("*private labels that spend 8*", 1.0, broken.labels)
    for model in (KNeighborsRegressor(1), RandomForestRegressor(50), HistGradientBoostingRegressor()):
        add(f"*{type(model).__name__}*", 1.0, model.fit(everything, labels).predict(everything))
    add("*true labels*", 1.0, labels)
    return sheet


# ---- other libraries ---------------------------------------------------------------------------------------

PEER = """
import json, sys
import numpy as np
import diffprivlib.mechanisms as dpl
import opendp.prelude as dp
dp.enable_features("contrib")
vectors = dp.vector_domain(dp.atom_domain(T=float, nan=False))
laplace = dp.m.make_laplace(vectors, dp.l1_distance(T=float), scale=1.0)
each = {
    "diffprivlib Laplace": dpl.Laplace(epsilon=1.0, sensitivity=1.0).randomise,
    "diffprivlib GaussianAnalytic": dpl.GaussianAnalytic(epsilon=1.0, delta=1e-5, sensitivity=1.0).randomise,
    "diffprivlib Staircase": dpl.Staircase(epsilon=1.0, sensitivity=1.0).randomise,
}
out = sys.stdout.buffer
for line in sys.stdin:
    name, label, size = json.loads(line)
    z = laplace([label] * size) if name == "OpenDP Laplace" else [each[name](label) for _ in range(size)]
    out.write(np.asarray(z, dtype="<f8").tobytes()); out.flush()
"""


class Peer:
    """A mechanism of another library, in its own environment, as a function of labels."""

    def __init__(self, name: str) -> None:
        self.name = name
        command = [str(PEER_PYTHON), "-c", PEER]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def __call__(self, labels: np.ndarray) -> np.ndarray:
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write((json.dumps([self.name, float(labels[0]), labels.size]) + "\n").encode())
        self.process.stdin.flush()
        return np.frombuffer(self.process.stdout.read(8 * labels.size), dtype="<f8")

    def close(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait()


def peers(samples: int, console: Console) -> Sheet:
    columns = ["library, ε = 1", "labels", "measured ≥", "in", "hits", "of the other", "verdict"]
    sheet = Sheet(f"Other libraries, {samples:,} samples a label", columns)
    names = [f"diffprivlib {kind}" for kind in ("Laplace", "GaussianAnalytic", "Staircase")]
    for name in track([*names, "OpenDP Laplace"], "Others …", console=console, transient=True):
        for labels in ((0.0, 1.0), (0.2, 0.21)):
            peer = Peer(name)
            delta = DELTA if "Gaussian" in name else 0.0
            found = ldp.audit(peer, labels=labels, epsilon=1.0, delta=delta, samples=samples)
            peer.close()
            worst = found.worst
            sheet.rows.append(
                [
                    name,
                    f"{labels[0]:g}, {labels[1]:g}",
                    number(found.epsilon),
                    worst.lens,
                    f"{worst.hits:,}",
                    f"{worst.false_hits:,}",
                    found.verdict,
                ]
            )
    return sheet


# ---- words -------------------------------------------------------------------------------------------------


def words(count: int) -> Sheet:
    many = np.empty(count, dtype=np.uint64)
    SecureWords().fill(many)
    many.sort()
    repeated = int(np.count_nonzero(many[1:] == many[:-1]))
    rows = [[f"{count:,}", str(repeated), f"{count**2 / 2**65:.2g}"]]
    return Sheet("Random words", ["words", "repeated", "expected of ideal words"], rows)


# ---- all of it ---------------------------------------------------------------------------------------------

ABOUT = """# Audits at length

`python -m benchmarks.audit` writes this page, `--part NAME` one table of it (ours, fits, peers, pipelines, broken,
words); below each table is the version that it was measured at. [docs/audit.md](../docs/audit.md) says how to
read it.

"detectable" is the ε that would be detected with probability 0.8 if there were an event of the best probability;
what is broken below, in italics where it stands among others, shows what is detected in fact. All audits of our
mechanisms together, and all of pipelines, raise a false alarm with probability 10⁻⁶ at most; so does each verdict
on another library. Each audit of one fit does with probability 0.05 at most.

"""

EXPECTED: dict[str, Callable[[list[str]], bool]] = {
    "ours": lambda row: row[-1] == f"{len(EPSILONS) * SEEDS} of {len(EPSILONS) * SEEDS}",
    "fits": lambda row: (row[-1] == "VIOLATION") == row[0].startswith("*"),
    "peers": lambda row: True,
    "pipelines": lambda row: row[-2] == "none detected",
    "broken": lambda row: row[-2] == "VIOLATION",
    "words": lambda row: row[1] == "0",
}
"""What a row of each table must say; a run in which one does not fails."""


def main(
    part: Annotated[
        str, typer.Option(help="ours, fits, peers, pipelines, broken or words; all by default.")
    ] = "all",
    share: Annotated[float, typer.Option(help="Part of the samples to draw.")] = 1.0,
    workers: Annotated[int, typer.Option(help="Processes for pipelines.")] = 2,
) -> None:
    console = Console()
    makers: dict[str, Callable[[], Sheet]] = {
        "ours": lambda: ours(int(100_000 * share), console),
        "fits": lambda: fits(int(5000 * share)),
        "peers": lambda: peers(int(60_000 * share), console),
        "pipelines": lambda: pipelines("on neighbouring data sets", PIPELINES, share, workers, console),
        "broken": lambda: pipelines("with a violation", BROKEN, share, workers, console),
        "words": lambda: words(int(1e8 * share)),
    }
    wrong: list[str] = []
    for name, make in makers.items():
        if part in ("all", name) and (name != "peers" or PEER_PYTHON.exists()):
            sheet = make()
            console.print(sheet.rich())
            if share == 1.0:
                keep(name, list(makers), sheet)
            wrong += [f"{name}: {' · '.join(row)}" for row in sheet.rows if not EXPECTED[name](row)]
    if wrong:
        console.print("Not as it must be:", *wrong, sep="\n", markup=False)
        raise typer.Exit(1)


def keep(name: str, order: list[str], sheet: Sheet) -> None:
    """Put a table into its place on the page, and leave the others as they are."""
    page = OUT.read_text(encoding="utf-8") if OUT.exists() else ""
    parts = {part: piece.split(f"<!-- end of {part} -->")[0] for part in order for piece in _after(page, part)}
    parts[name] = f"\n{sheet.markdown()}\n{cpu()}, labeldp {ldp.__version__} ({commit()}).\n\n"
    kept = [f"<!-- {part} -->{parts[part]}<!-- end of {part} -->\n" for part in order if part in parts]
    OUT.write_text(ABOUT + "\n".join(kept), encoding="utf-8")


def _after(page: str, part: str) -> list[str]:
    return page.split(f"<!-- {part} -->")[1:2]


if __name__ == "__main__":
    typer.run(main)
