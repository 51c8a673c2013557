"""A Spark in trouble: workers killed, tasks begun again, actions repeated. The release stays one release."""

from __future__ import annotations

import pytest

from conftest import spark_program


@pytest.fixture(scope="module")
def answer(tmp_path_factory):
    return spark_program("trouble_program.py", tmp_path_factory.mktemp("trouble"))


def test_killed_workers_and_repeated_actions_give_the_same_bits(answer):
    assert answer["rows"] == 8000
    assert "1" in answer["tried again"]["kill"]  # a worker was killed, and its task begun again
    assert answer["equal"]


def test_the_secret_is_in_no_plan_log_page_or_output(answer):
    assert all(answer["searched"][name] > 1000 for name in ("plan", "output", "driver", "events"))
    assert answer["halves"] == 3  # the secret, and both halves in which it travels
    assert answer["pages"] >= 8
    # The twin, a plan with the secret in a column, shows that it would be found: in its plan and in the event log.
    assert answer["seen"] == ["twin events", "twin plan"]
