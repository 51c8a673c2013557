"""Test error of both regressors on tables from different worlds, some to develop with, others held out."""
