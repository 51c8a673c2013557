"""Put this folder on the path, so that tests can import `helpers`; mark tests; shared fixtures."""

import json
import os
import shutil
import signal
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import HealthCheck, settings

# No test may depend on the machine's load, or on luck.
settings.register_profile(
    "repeatable", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("repeatable")

# A run in the background ignores Ctrl-C, and so would the commands that tests start and stop.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

sys.path.insert(0, str(Path(__file__).parent))

# Tests of the paper's networks compile much and compute little; set before JAX is imported.
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true")

# What tests start in processes of their own.
collect_ignore = ["spark/quick_daemon.py", "spark/connect_program.py"]
collect_ignore += ["spark/trouble_program.py"]
if find_spec("pyspark") is None or sys.platform == "win32":  # where Spark needs programs of Hadoop's own
    collect_ignore += ["spark"]


QUICK_TESTS = 3
"""Of each file, `make test-fast` runs so many tests, those that are not slow, with one case each."""

SHARED = {
    "spark": ("spark_interference", "spark_model", "spark_release"),
    "a cluster in trouble": ("spark_trouble",),
    "reports": ("report", "report_browser"),
    "saved models": ("hostile_models", "model_files", "fuzz_models"),
    "networks": ("run", "tables"),
    **{name: (name,) for name in ("attacks_outputs", "cli_cards")},
    **{
        name: (name,)
        for name in ("files_faults", "fit_cli", "page_browser", "row_release", "units", "verify_card")
    },
}
TOGETHER = {f"test_{file}": name for name, files in SHARED.items() for file in files}
"""Files whose tests run in one process, which it names: what they share takes seconds to make."""

LONG = {"README", "guide", "test_spark_connect", "test_examples", "test_platforms"}
"""Files and folders with tests of many seconds: they come first, so that no process waits in the end."""


def pytest_collection_modifyitems(items):
    """Mark Spark's folder, users of a browser, long documents, all but a few quick tests; put long ones first."""
    tests = {}
    for item in items:
        if item.path.parent.name == "spark":
            item.add_marker("spark")
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker("browser")
        if {item.path.parent.name, item.path.stem} & {"README", "guide"}:
            item.add_marker("slow")
        if any(item.iter_markers("slow")):
            continue
        quick, name = tests.setdefault(item.path, set()), item.nodeid.partition("[")[0]
        if name in quick or len(quick) >= QUICK_TESTS:
            item.add_marker("further")
        quick.add(name)
    items.sort(key=lambda item: not {item.path.parent.name, item.path.stem} & LONG)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Run tests in the processes of `TOGETHER`; groups of pytest-xdist 3.8 are lost with pytest 9.2."""
    from xdist.scheduler import LoadScopeScheduling

    class Together(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            on_spark = "plot_06_cluster" in nodeid
            return "spark" if on_spark else TOGETHER.get(Path(nodeid.partition("::")[0]).stem, nodeid)

    return Together(config, log)


def pytest_make_parametrize_id(config, val, argname):
    """Name long values by their argument: keys and cards are random, and workers must agree on names."""
    return argname if isinstance(val, str | bytes) and len(val) > 60 else None


@pytest.fixture
def cache(tmp_path):
    """A user with no data and an empty cache; returns their cache folder."""
    with mock.patch.dict(os.environ, {"LABELDP_DATA": "", "XDG_CACHE_HOME": str(tmp_path / "caches")}):
        yield tmp_path / "caches" / "labeldp"


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder of the test's own, in which it works."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def set_constants(monkeypatch):
    """Return a function that sets the library's constants by name, so that a few rows reach limits of many."""

    def set_constants(values):
        for name, value in values.items():
            monkeypatch.setattr(f"labeldp.{name}", value)

    return set_constants


@pytest.fixture
def uninstall(monkeypatch):
    """Return a function after which packages cannot be imported."""

    def uninstall(*packages):
        for name in packages:
            monkeypatch.setitem(sys.modules, name, None)

    return uninstall


FLAGS = ["--no-sandbox", "--no-first-run"]
FLAGS += [f"--disable-{what}" for what in ("gpu", "quic", "background-networking", "component-update", "sync")]


@pytest.fixture(scope="module")
def browser():
    """A real Chromium, driven by Playwright."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("no Chromium here: sudo apt-get install chromium")
    playwright = pytest.importorskip("playwright.sync_api", reason="no Playwright: pip install playwright")
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=chromium, args=FLAGS, timeout=120_000)
        yield started
        started.close()


SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Compile quickly rather than well: half of a short session's processor time went to Java's compiler."""


def spark_builder(folder, master):
    """Return the builder of a small Spark session with its files in a folder; skip where there is no Spark.

    Without a master it is one of Spark Connect, with a server of its own.
    """
    pytest.importorskip("pyspark", reason='PySpark is not installed: pip install "labeldp[spark]"')
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("Java is not installed, and Spark needs it")
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    settings = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.extraJavaOptions": SHORT_LIVED,
        "spark.driver.memory": "1g",
        "spark.executor.extraJavaOptions": SHORT_LIVED,
        "spark.executorEnv.PYTHONPATH": os.environ["PYTHONPATH"],
        "spark.local.dir": str(folder / "local"),
        "spark.python.daemon.module": "spark.quick_daemon",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "1000",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    builder = SparkSession.builder.config(map=settings)
    return builder.remote("local[2]") if master is None else builder.master(master)


def spark_program(name, folder):
    """Run a program of tests/spark that needs a Spark of its own, and return the answer that it prints."""
    spark_builder(folder, "local[1]")  # skips where there is no Spark
    command = [sys.executable, str(Path(__file__).parent / "spark" / name), str(folder)]
    how = {"capture_output": True, "text": True, "timeout": 1800, "check": False}
    done = subprocess.run(command, cwd=folder, **how)  # noqa: S603, PLW1510
    found = [line for line in done.stdout.splitlines() if line.startswith("ANSWER ")]
    assert found, done.stdout[-3000:] + done.stderr[-3000:]
    return json.loads(found[0].removeprefix("ANSWER "))


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    """A classic Spark session on two cores, where a task may fail three times."""
    session = spark_builder(tmp_path_factory.mktemp("spark"), "local[2,4]").getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()
