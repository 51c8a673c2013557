"""Auditing: a lower bound on ε from samples alone, for mechanisms, for functions and for whole pipelines."""

from labeldp.audit.events import Lens, standard_lenses
from labeldp.audit.result import Audit, EventResult
from labeldp.audit.run import audit, audit_pipeline

__all__ = ["Audit", "EventResult", "Lens", "audit", "audit_pipeline", "standard_lenses"]
