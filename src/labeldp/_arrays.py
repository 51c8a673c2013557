"""Names for the arrays that most rooms work with, by what they hold."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Small = NDArray[np.float32]
Index = NDArray[np.int64]
Counts = NDArray[np.int64]
Sums = NDArray[np.int64]
Words = NDArray[np.uint64]
