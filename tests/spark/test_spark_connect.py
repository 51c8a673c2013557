"""Through Spark Connect it is the same release; the twins of its tests are in `test_spark_interference`."""

from __future__ import annotations

import pytest

from conftest import spark_program


def test_through_spark_connect_releases_priors_and_models_are_those_of_one_machine(tmp_path):
    for part in ("grpc", "grpc_status", "zstandard", "google.protobuf"):
        pytest.importorskip(part, reason='parts of Spark Connect are not installed: pip install "labeldp[spark]"')
    answer = spark_program("connect_program.py", tmp_path)
    assert answer["connect"].startswith("pyspark.sql.connect.")
    assert answer["releases"] == [True] * 5
    assert answer["reached"] == 0  # nothing that is done to the output reaches back to the raw label
    assert answer["columns"] == ["id", "x", "y"]
    assert answer["refused"] == [2, 0.0]
    assert answer["model"]
    assert answer["interference"] == []  # tables that differ in labels only give the same bytes, cells replayed
