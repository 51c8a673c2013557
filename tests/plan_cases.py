"""Text files as Spark reads them."""


def read_text(spark, path, schema="id long, y double, z int", **options):
    return spark.read.csv(path, schema=schema, **{"header": True, **options})
