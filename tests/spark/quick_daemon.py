"""PySpark's daemon of Python workers, quicker: they need not tidy up after every task.

PySpark collects garbage and looks for new modules then, 0.1 s of processor time a task (PySpark 4.3), which is
most of what tests with many small tasks would take.
"""

import gc
import importlib

gc.collect = lambda *_: 0
importlib.invalidate_caches = lambda: None

from pyspark.daemon import manager  # noqa: E402

if __name__ == "__main__":
    manager()
