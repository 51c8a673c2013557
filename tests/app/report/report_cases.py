"""Cards of every kind, honest and hostile, and a reader of pages that finds what a report must not have."""

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

HOSTILE = '"><script>alert(1)</script><img src=x onerror=alert(2)>\u202e\x00&lt;\ud800'
BOUNDS = (0.0, 200.0)
KINDS = (
    *("release", "rounds", "labels-model", "sums-model"),
    *("seeded", "hostile"),
)
RELEASES = {
    "release": {"epsilon": 1.0},
    "seeded": {"epsilon": 1.0, "random_state": 1},
}


def labels(rows=4000):
    return np.clip(np.random.default_rng(5).lognormal(3.5, 0.6, rows), *BOUNDS)


def ledger():
    """A ledger with a limit, and something spent before."""
    made = ldp.Ledger(limit=ldp.Budget(3.0))
    made.charge("labels", epsilon=0.5)
    return made


@cache
def card(kind):
    """Return a card of a kind; see `KINDS`."""
    if kind in RELEASES:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ldp.InsecureRandomnessWarning)
            return ldp.privatize(labels(), ledger=ldp.Ledger(), **{"bounds": BOUNDS, **RELEASES[kind]}).to_card()
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
    content = json.loads(dated(text, HOSTILE))
    for charge in content["charges"]:
        if charge["purpose"] == "labels":  # what else was paid for is named in full
            charge["description"] += HOSTILE
    free = ("name", "format", "column", "column_holds", "unbiased_column", "row_order", "not_copied")
    more = {
        "columns": [HOSTILE] * 3,
        "types_changed": {HOSTILE: [HOSTILE, HOSTILE]},
        "separator": HOSTILE,
        "encoding": "x" * 100_000,
        "rows": content["rows"],
    }
    return forged({**content, "file": {**FILE, **dict.fromkeys(free, HOSTILE), **more}})


def dated(text, when):
    """Return the card with another time of its charges, wherever they stand on it."""
    content = json.loads(text)
    old = {json.dumps(charge["when"]) for charge in content["charges"]}
    plain = json.dumps(content)
    for one in old:
        plain = plain.replace(one, json.dumps(when))
    return forged(json.loads(plain))


@cache
def page(kind):
    """Return the report of a card, or of a mechanism by its name."""
    if kind in KINDS:
        return report.render_report(card(kind))
    return report.render_report(mechanisms(1.0)[kind].to_json())


class Reader(HTMLParser):
    """Reads a page as a browser would, as far as these tests need it."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.tags, self.texts, self.links = [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        for name, value in attributes:
            if name in ("href", "src", "xlink:href"):
                self.links.append(value)
            self.links += re.findall(r"url\(([^)]*)\)", value or "")

    handle_startendtag = handle_starttag

    def handle_data(self, data):
        self.texts.append(data)

    def attributes(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]


def faults(text):
    """Return what is wrong with a page: code, and calls to anywhere."""
    read = Reader(text)
    found = [
        f"<{tag}>"
        for tag, _ in read.tags
        if tag in ("script", "iframe", "object", "embed", "form", "img", "a", "svg")
    ]
    found += [f"{tag} {name}" for tag, attributes in read.tags for name in attributes if name.startswith("on")]
    found += [f"link {link}" for link in read.links if link != "data:,"]
    policy = [m.get("content", "") for m in read.attributes("meta") if "http-equiv" in m]
    if len(policy) != 1 or not policy[0].startswith("default-src 'none'"):
        found.append("no Content-Security-Policy")
    if "@import" in text or re.search(r"https?://", text):
        found.append("an address")
    return found
