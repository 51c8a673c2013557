"""Fast compilation: tests of the paper's networks compile much and compute little."""

import os

# Must be set before JAX is imported.
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true")
