"""Ledgers, tables, models and the demo on this system, to a pipe with one of Windows' code pages."""

import json
import os
import re
import sys
from pathlib import Path

import pytest

import labeldp as ldp
from helpers import python

WORK = """
import json, os, sys, threading
from pathlib import Path
import numpy as np
import labeldp as ldp
from labeldp.app.cli import app

said = {}
y = np.linspace(0, 5, 400)
ledger = ldp.Ledger.open("budget", limit=ldp.Budget(12))
said["labels"] = len(ldp.privatize(y, epsilon=1, bounds=(0, 5), ledger=ledger).labels)

def spend():
    for _ in range(5):
        ldp.Ledger.open("shared", limit=ldp.Budget(1)).charge("labels", epsilon=0.01)

spenders = [threading.Thread(target=spend) for _ in range(4)]
for each in spenders:
    each.start()
for each in spenders:
    each.join()
said["shared"] = str(ldp.Ledger.open("shared", create=False).total)

def command(*words):
    return app([*words], standalone_mode=False)

Path("in.csv").write_text("id,price\\n" + "".join(f"{k},{k % 5}\\n" for k in range(400)))
order = ["privatize", "in.csv", "--label", "price", "--bounds", "0", "5", "--epsilon", "1", "--ledger", "budget"]
for _ in range(2):
    said["out.csv"] = command(*order, "-o", "out.csv", "--force")
if sys.platform == "win32":
    with open("out.csv"):
        said["in use"] = command(*order, "-o", "out.csv", "--force")
model = ldp.ModelReleaseRegressor(epsilon=1, bounds=(0, 5)).fit(y[:, None], y)
for _ in range(2):
    ldp.save_model(model, "model", force=True)
said["model"] = len(ldp.load_model("model").predict(y[:2, None]))
said["verify"] = command("verify", "out.csv")
said["demo"] = command("demo", "--rows", "300")
said["left"] = sorted(os.listdir("."))
print("ANSWER", json.dumps(said))
"""


@pytest.mark.slow
def test_ledgers_tables_folders_models_and_the_demo_work_on_this_system(tmp_path):
    environment = {
        **os.environ,
        "LOKY_MAX_CPU_COUNT": "1",  # or joblib starts a program to count them, as only Windows can
        "PYTHONIOENCODING": "cp1252",
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }
    done = python(WORK, check=False, cwd=tmp_path, env=environment, capture_output=True)
    printed = done.stdout.decode("cp1252")
    assert "ANSWER " in printed, printed[-1000:] + done.stderr.decode("cp1252")[-4000:]
    answer = json.loads(printed.rpartition("ANSWER ")[2])
    assert (answer["labels"], answer["model"]) == (400, 2)
    commands = ("out.csv", "verify", "demo")
    assert {name: answer[name] for name in commands} == dict.fromkeys(commands)
    assert {"out.csv.card.json", "labeldp-demo.png", "model"} < set(answer["left"])
    assert not [name for name in answer["left"] if name.endswith((".part", ".old"))]
    assert answer["shared"] == "ε = 0.2", "charges of threads are added up"
    assert answer.get("in use", 1) == 1, "a table that another program has open is refused before it costs"
    assert "epsilon = 1" in printed, "a code page without Greek letters gets their names"
    assert ldp.Ledger.open(tmp_path / "budget").total == ldp.Budget(3)


def test_no_file_with_tests_or_examples_imports_what_windows_lacks_before_a_test_begins():
    root = Path(__file__).parents[1]
    files = [path for folder in ("docs", "reproduction", "src", "tests") for path in (root / folder).rglob("*.py")]
    needed = r"^(?:import|from) (?:fcntl|grp|pty|pwd|resource|termios|tty)\b"
    found = {path.name for path in files if re.search(needed, path.read_text(encoding="utf-8"), re.MULTILINE)}
    assert not found, "import it where it is used"
