"""Test error of both regressors on tables from different worlds, half of them to choose by and half to judge."""
