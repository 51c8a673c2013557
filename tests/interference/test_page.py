"""The page: all that it answers and writes is the same for tables that differ in labels only.

Hints are the one exception: they are on the pages of the table and the request, before anything is spent.
"""

from pathlib import Path

import pytest

from app.page.page_client import Client
from interference import changes, tables
from interference.harness import Way, assert_same

ROWS = 150
CHANGES = changes.changes(ROWS)
TIMES = {"last-modified", "etag"}
"""Headers with the time at which a file was written."""


class Visitor:
    """Walks through the page, and keeps all that it answers."""

    def __init__(self):
        self.client, self.answers = Client(Path.cwd()).enter(), {}

    def look(self, path, name=None):
        self.keep(name or path, self.client.get(path))

    def keep(self, name, answer):
        headers = [pair for pair in answer.headers if pair[0] not in TIMES]
        self.answers[name] = (answer.status, headers, answer.body)

    def read(self):
        self.look("/")
        unfinished = self.client.read("table.csv", tables.LABEL, drop=["code", "word"])
        self.look(unfinished.at("table"), "table")
        self.look(f"/work/{unfinished.reading.id}", "progress of reading")
        return unfinished

    def release(self, unfinished, **budget):
        self.look(unfinished.at("column"), "column")
        low, high = changes.BOUNDS
        self.client.describe(unfinished, bounds=(low, high))
        self.look(unfinished.at("budget"), "budget")
        figures = self.client.figures(unfinished, ledger="book.db", **budget)
        self.keep("figures", figures)
        self.client.budget(unfinished, limit=9, **budget)
        self.look(unfinished.at("release"), "request")
        self.client.release(unfinished)
        self.look(unfinished.at("release"), "release")
        self.look(f"/work/{unfinished.release.id}", "progress of the release")
        self.look("/releases")


def released(given):
    visitor = Visitor()
    visitor.release(visitor.read(), epsilon=1)
    visitor.look("/card?name=table.private.csv.card.json")
    visitor.look("/report?card=table.private.csv.card.json")
    visitor.look("/", "again")
    return visitor.answers


def fitted(given):
    visitor = Visitor()
    visitor.release(visitor.read(), kind="model", epsilon=2)
    assert b"name was left out" in visitor.answers["release"][2]
    visitor.look("/card?name=table.model/card.json")
    visitor.look("/report?card=table.model/card.json")
    return visitor.answers


def regressed(given):
    visitor = Visitor()
    visitor.release(visitor.read(), kind="regression", epsilon=9, on="kind")
    visitor.look("/card?name=table.regression.html.card.json")
    return visitor.answers


def averaged(given):
    visitor = Visitor()
    visitor.release(visitor.read(), kind="mean", epsilon=9)
    return visitor.answers


def refused(given):
    visitor = Visitor()
    visitor.read()
    return visitor.answers


def way(act):
    columns = {**tables.public(ROWS), "name": [f"name {row}" for row in range(ROWS)]}
    return Way(act, lambda folder, labels: tables.write(folder, tables.Input(labels, columns=columns), "csv"))


def statuses(observed):
    """Return the status of each answer, by its name."""
    return {name: answer[0] for name, answer in observed.result.items()}


@pytest.mark.slow
@pytest.mark.parametrize("act", [released, fitted, regressed, averaged])
def test_nothing_that_the_page_answers_or_writes_depends_on_labels(act, tmp_path):
    first = assert_same(way(act), *CHANGES["all rows"], tmp_path)
    assert set(statuses(first).values()) == {200}
    written = {
        released: "table.private.csv",
        fitted: "table.model/card.json",
        regressed: "table.regression.html",
        averaged: "table.mean.html",
    }
    assert {"book.db", written[act]} <= set(first.files)
    assert first.stdout == first.stderr == b""


@pytest.mark.slow
def test_hints_are_on_the_pages_of_the_table_and_the_request_and_nowhere_else(tmp_path):
    shown = []

    def act(given):
        answers = released(given)
        shown.extend(answers.pop(page)[2] for page in ("table", "request"))
        return answers

    first = assert_same(way(act), *CHANGES["sorted"], tmp_path)
    assert set(statuses(first).values()) == {200}
    assert [b"For you only" in page for page in shown] == [False, False, True, True]


@pytest.mark.parametrize("bad", [("x", "a longer secret"), ("", ""), ("nan", "nan"), ('"1,5"', '"-1234,5"')])
def test_what_is_said_of_labels_that_are_no_numbers(bad, tmp_path):
    pair = [changes.changed(labels, [17], [text]) for labels, text in zip(CHANGES["all rows"], bad, strict=True)]
    first = assert_same(way(refused), *pair, tmp_path)
    assert first.calls == ([], None)
