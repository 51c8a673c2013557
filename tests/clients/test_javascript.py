"""The client in JavaScript gives Python's released values bit for bit, and uses no card that is forged."""

import functools
import http.server
import json
import math
import shutil
import subprocess
import threading
from pathlib import Path

import numpy as np
import pytest
from clients.vectors.forgeries import forgeries as listed_forgeries
from clients.vectors.make import MAKERS, released_values, vectors, write
from scipy import stats

import labeldp as ldp
from accounts.test_verify_card import FALSE, VALID, forgeries, library, mine
from card_cases import SMALL
from fuzzing import LONG
from helpers import EVERY

CLIENTS = Path(__file__).parents[2] / "clients"
JAVASCRIPT = CLIENTS / "javascript"
NODE = shutil.which("node")
with_node = pytest.mark.skipif(NODE is None, reason="no Node here: install Node 18 or later")


def committed(name):
    """Return test vectors of the repository."""
    return json.loads((CLIENTS / "vectors" / f"{name}.json").read_text(encoding="ascii"))


def node(function, path, *arguments):
    """Return what a function of vectors.js returns for the content of a file, in Node."""
    command = [NODE, str(JAVASCRIPT / "tests" / "run.js"), function, str(path), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800, check=False)  # noqa: S603
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


# ---- vectors ----------------------------------------------------------------------------------------------------


def test_python_still_releases_what_the_committed_vectors_say():
    for entry in committed("mechanisms"):
        mechanism = ldp.load_mechanism(entry["card"])
        labels, words, rounding, expected = map(list, zip(*entry["cases"], strict=True))
        released = released_values(mechanism, labels, list(map(int, words)), rounding)
        assert np.array(released).tobytes() == np.array(expected, dtype=float).tobytes(), entry["name"]


def test_the_committed_vectors_are_of_every_pure_mechanism_and_small():
    assert {entry["name"] for entry in committed("mechanisms")} == set(MAKERS)
    assert {name.partition(",")[0] for name in MAKERS} == {name.partition(",")[0] for name in EVERY} - {"gaussian"}
    assert sum(path.stat().st_size for path in (CLIENTS / "vectors").glob("*.json")) < 1 << 20


@with_node
def test_node_releases_the_same_bits_for_the_committed_vectors():
    found = node("compare", CLIENTS / "vectors" / "mechanisms.json")
    assert found["count"] >= 1000
    assert found["wrong"] == []


@with_node
@pytest.mark.slow
def test_node_releases_the_same_bits_for_100_000_vectors_of_all_mechanisms(tmp_path):
    write(tmp_path / "many.json", list(vectors(100_000, seed=8)))
    found = node("compare", tmp_path / "many.json")
    assert found["count"] >= 100_000
    assert found["wrong"] == []


@with_node
def test_a_client_that_is_off_by_one_bit_is_noticed(tmp_path):
    entry = committed("mechanisms")[0]
    entry["cases"][0][3] = math.nextafter(entry["cases"][0][3], math.inf)
    write(tmp_path / "changed.json", [entry])
    assert len(node("compare", tmp_path / "changed.json")["wrong"]) == 1


# ---- forged cards -----------------------------------------------------------------------------------------------


def test_python_and_the_checker_of_the_docs_refuse_the_committed_forgeries():
    made = list(listed_forgeries())
    assert [one["why"] for one in made] == [one["why"] for one in committed("forged")]
    for one in committed("forged")[:-1]:  # the last has a delta: it is valid, and no client may use it
        assert library(one["card"]) != VALID, one["why"]


@with_node
def test_node_refuses_the_committed_forgeries(tmp_path):
    path = tmp_path / "cards.json"
    path.write_text(json.dumps([one["card"] for one in committed("forged")]))
    accepted = node("accepts", path)
    assert [one["why"] for one, used in zip(committed("forged"), accepted, strict=True) if used] == []


@with_node
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(44, 54) if LONG else [44])
def test_node_refuses_every_mechanism_that_the_checker_of_the_docs_refuses(tmp_path, seed):
    """Beyond what is valid, it may use a mechanism with an unknown name whose counts prove its epsilon."""
    honest = {name: SMALL[name](16.0, (1, 4)).to_json() for name in EVERY}
    honest |= {f"{name}, 1": SMALL[name](1.0, (1, 4)).to_json() for name in EVERY if name not in ("unbiased",)}
    made = [text for text, _ in forgeries(honest, 1_000 if LONG else 400, seed=seed)]
    path = tmp_path / "cards.json"
    path.write_text(json.dumps([*honest.values(), *made]))
    accepted = node("accepts", path)
    assert accepted[: len(honest)] == [not name.startswith("gaussian") for name in honest]
    verdicts = [mine(text)[0] for text in made]
    used = [verdict for verdict, use in zip(verdicts, accepted[len(honest) :], strict=True) if use]
    assert FALSE in verdicts
    assert FALSE not in used
    assert VALID in used


@with_node
def test_the_promises_of_the_client_hold_in_node():
    command = [NODE, "--test", str(JAVASCRIPT / "tests" / "labeldp.test.js")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)  # noqa: S603
    assert done.returncode == 0, done.stdout[-5000:]


@with_node
def test_the_client_works_where_web_crypto_is_no_global(tmp_path):
    """As in Node 18."""
    code = f"""
        import {{ load }} from "{(JAVASCRIPT / "labeldp.js").as_uri()}";
        const client = await load({json.dumps(committed("mechanisms")[0]["card"])});
        console.log(typeof globalThis.crypto, Number.isFinite(client.randomize(1)));
    """
    path = tmp_path / "program.mjs"
    path.write_text(code, encoding="utf-8")
    command = [NODE, "--no-experimental-global-webcrypto", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)  # noqa: S603
    assert done.stdout.strip() == "undefined true", done.stderr


# ---- distribution -----------------------------------------------------------------------------------------------

DRAWN = {
    "rr-on-bins": (lambda: ldp.RROnBins(edges=[0, 1, 3, 5], outputs=[0.5, 2, 4], epsilon=1.0), 0.5),
    "two-point": (lambda: ldp.TwoPoint(bounds=(0, 5), epsilon=1.0), 1.25),
    "unbiased": (lambda: ldp.Unbiased.design(ldp.Histogram([0, 1, 5], [3, 1]), 1.0, size=8), 1.7),
    "laplace": (lambda: ldp.Laplace(bounds=(0, 5), epsilon=8.0), 1.7),
}


@with_node
@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("name", DRAWN)
def test_draws_in_node_have_the_distribution_of_the_counts(name, tmp_path):
    """A chi-square test with a false-alarm rate of 2.5e-7; one of 200 outputs that is 10 % off is found."""
    make, label = DRAWN[name]
    mechanism = make()
    path = tmp_path / "card.json"
    path.write_text(json.dumps(mechanism.to_json()))
    draws = 1_000_000 if LONG else 100_000
    tally = {float(value): count for value, count in node("tally", path, label, draws).items()}
    values = np.array(sorted(tally))
    assert (mechanism.channel.nearest_output(values) == values).all(), "outputs lie on Python's lattice"
    inner = np.unique((values[1:] + values[:-1]) / 2)
    inner = inner[:: max(1, inner.size // 200)]
    edges = np.concatenate([[-1e9], inner, [1e9]])
    expected = np.diff(mechanism.channel.cumulative(label, edges)) * draws
    observed, _ = np.histogram(values, edges, weights=[tally[value] for value in values.tolist()])
    enough = expected >= 20
    observed = np.append(observed[enough], observed[~enough].sum())
    expected = np.append(expected[enough], expected[~enough].sum())
    observed, expected = observed[expected > 0], expected[expected > 0]
    statistic = ((observed - expected) ** 2 / expected).sum()
    assert stats.chi2.sf(statistic, observed.size - 1) > 2.5e-7


# ---- a browser --------------------------------------------------------------------------------------------------


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serve files without a line for each."""

    def log_message(self, *_):
        """Say nothing."""


@pytest.fixture(scope="module")
def address():
    """The address of a server of the clients' folder."""
    handler = functools.partial(Quiet, directory=str(CLIENTS))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


IN_BROWSER = """async () => {
    const client = await import("/javascript/labeldp.js");
    const { compare, accepts } = await import("/javascript/tests/vectors.js");
    const read = async (name) => (await fetch(`/vectors/${name}.json`)).json();
    const found = await compare(client, await read("mechanisms"));
    const forged = await read("forged");
    const accepted = await accepts(client, forged.map(({ card }) => card));
    return { ...found, forged: forged.filter((_, i) => accepted[i]).map(({ why }) => why) };
}"""


def test_chromium_releases_the_same_bits_and_refuses_the_same_cards(browser, address):
    context = browser.new_context()
    try:
        page = context.new_page()
        page.goto(f"{address}/vectors/")
        found = page.evaluate(IN_BROWSER)
    finally:
        context.close()
    assert found["count"] >= 1000
    assert (found["wrong"], found["forged"]) == ([], [])


# ---- the package ------------------------------------------------------------------------------------------------


def test_the_module_is_short_and_alone_and_of_this_version():
    text = (JAVASCRIPT / "labeldp.js").read_text(encoding="utf-8")
    assert len(text.splitlines()) < 350
    assert "Math.random" not in text
    assert [line for line in text.splitlines() if line.startswith("import ")] == []
    package = json.loads((JAVASCRIPT / "package.json").read_text(encoding="utf-8"))
    assert package["version"] == ldp.__version__
    assert "dependencies" not in package
    assert all((JAVASCRIPT / name).exists() for name in package["files"])
