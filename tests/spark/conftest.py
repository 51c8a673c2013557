"""Tables that the checks of plans are tried on."""

import numpy as np
import pytest


@pytest.fixture(scope="module")
def df(spark, tmp_path_factory):
    """A table in a file: id, x, y."""
    import pyarrow as pa

    path = str(tmp_path_factory.mktemp("plans") / "t")
    table = pa.table({"id": range(500), "x": range(500), "y": np.random.default_rng(2).uniform(0, 5, 500)})
    spark.createDataFrame(table).write.parquet(path)
    read = spark.read.parquet(path)
    read.createOrReplaceTempView("plans_t")
    return read


@pytest.fixture(scope="module")
def text_file(tmp_path_factory):
    """A text file: id, y, z, with a z that is not a number."""
    path = tmp_path_factory.mktemp("text") / "t.csv"
    path.write_text("id,y,z\n1,-5.25,3\n2,7.5,x\n3,2.125,4\n")
    return str(path)
