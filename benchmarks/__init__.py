"""Measurements. Each ``bench_*.py`` runs by itself and prints its figures."""
