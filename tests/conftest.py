"""Makes `helpers` importable: pytest's importlib mode does not put this folder on the path."""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

# Tests of the paper's networks compile much and compute little; must be set before JAX is imported.
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true")
