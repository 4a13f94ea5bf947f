"""Transformations of graphs, one per file; each is ``run(graph) -> (graph, number of changes)``.

A pass gives back the very graph it was given if it changed nothing. The order in which they run is the
list in :mod:`mycelia.compiler.pipeline`.
"""
