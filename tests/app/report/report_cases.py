"""Cards of every kind, honest and hostile, and a reader of pages that finds code and links."""

import json
import re
import warnings
from functools import cache
from html.parser import HTMLParser

import numpy as np

import labeldp as ldp
from card_cases import FILE
from forged_cards import forged
from helpers import mechanisms
from labeldp.app import report

HOSTILE = '"><script>alert(1)</script><img src=x onerror=alert(2)>\u202e\x00&lt;'
BOUNDS = (0.0, 200.0)
KINDS = ("release", "rounds", "labels-model", "sums-model", "seeded", "hostile")


def labels(rows=4000):
    return np.clip(np.random.default_rng(5).lognormal(3.5, 0.6, rows), *BOUNDS)


def ledger():
    """A ledger with a limit, and something spent before."""
    made = ldp.Ledger(limit=ldp.Budget(3.0))
    made.charge("labels", epsilon=0.5)
    return made


def release(**options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ldp.InsecureRandomnessWarning)
        return ldp.privatize(labels(), **{"epsilon": 1.0, "bounds": BOUNDS, **options})


@cache
def card(kind):
    """Return a card of a kind; see `KINDS`."""
    if kind == "release":
        return release().to_card()
    if kind == "seeded":
        return release(random_state=1).to_card()
    if kind == "hostile":
        return hostile(card("release"))
    X = np.random.default_rng(6).normal(size=(400, 2))
    maker = ldp.ModelReleaseRegressor if kind == "sums-model" else ldp.LabelReleaseRegressor
    model = maker(epsilon=1.0, bounds=BOUNDS).fit(X, labels(400))
    return model.release_.to_card() if kind == "rounds" else model.to_card()


def changed(text, **entries):
    """Return the card with other entries and a checksum that fits."""
    return forged({**json.loads(text), **entries})


def hostile(text):
    """Return a release's card with HTML wherever text is free, and the right checksum."""
    content = json.loads(text)
    when = content["charges"][0]["when"]
    content = json.loads(json.dumps(content).replace(json.dumps(when), json.dumps(HOSTILE)))
    for charge in content["charges"]:
        if charge["purpose"] == "labels":  # what else was paid for is named in full
            charge["description"] += HOSTILE
    free = ("name", "format", "column", "row_order", "not_copied")
    more = {
        "columns": [HOSTILE] * 3,
        "types_changed": {HOSTILE: [HOSTILE, HOSTILE]},
        "separator": HOSTILE,
        "encoding": "x" * 100_000,
        "rows": content["rows"],
    }
    return forged({**content, "file": {**FILE, **dict.fromkeys(free, HOSTILE), **more}})


@cache
def page(kind):
    """Return the report of a card, or of a mechanism by its name."""
    return report.render_report(card(kind) if kind in KINDS else mechanisms(1.0)[kind].to_json())


class Reader(HTMLParser):
    """Reads a page as a browser would, as far as these tests need it."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.tags, self.texts = [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    handle_startendtag = handle_starttag

    def handle_data(self, data):
        self.texts.append(data)


def words(text):
    return " ".join(" ".join(Reader(text).texts).split())


CODE = {"script", "iframe", "object", "embed", "form", "img", "a", "svg"}


def faults(text):
    """Return what is wrong with a page: code, and calls to anywhere."""
    read, found = Reader(text), []
    for tag, attributes in read.tags:
        if tag in CODE:
            found.append(f"<{tag}>")
        for name, value in attributes.items():
            if name.startswith("on") or (name in ("href", "src") and value != "data:,"):
                found.append(f"{tag} {name}")
    policies = [values.get("content", "") for tag, values in read.tags if tag == "meta" and "http-equiv" in values]
    if len(policies) != 1 or not policies[0].startswith("default-src 'none'"):
        found.append("no Content-Security-Policy")
    if re.search(r"@import|https?://|url\(", text):
        found.append("an address")
    return found
