"""Minimum cuts of flow networks.

The cheapest way to cut a network so that nothing flows from its source to its sink is found by maximum flow, with
E. A. Dinic, "Algorithm for solution of a problem of maximum flow in networks with power estimation" (1970): paths of
least length are filled depth first until none is left, then distances are measured again. SciPy has it too, but takes
longer to import than all passes take together.
"""

from __future__ import annotations

SOURCE, SINK = 0, 1

#: The capacity of an edge that is never cut.
NEVER = 2**62


class Network:
    """A flow network that is built edge by edge.

    >>> network = Network()
    >>> a = network.vertex()
    >>> network.edge(SOURCE, a, 3)
    >>> network.edge(a, SINK, 2)
    >>> sorted(network.source_side()) == [SOURCE, a]
    True
    """

    def __init__(self) -> None:
        # edge i goes to _ends[i] and takes _rest[i] more; edge i ^ 1 is its way back
        self._leaving: list[list[int]] = [[], []]
        self._ends: list[int] = []
        self._rest: list[int] = []

    def vertex(self) -> int:
        """Add a vertex; its number."""
        self._leaving.append([])
        return len(self._leaving) - 1

    def edge(self, start: int, end: int, capacity: int) -> None:
        """Add an edge that costs ``capacity`` if ``start`` is on the source's side and ``end`` is not."""
        self._leaving[start].append(len(self._ends))
        self._leaving[end].append(len(self._ends) + 1)
        self._ends += (end, start)
        self._rest += (capacity, 0)

    def source_side(self) -> set[int]:
        """The vertices on the side of the source: of the cheapest cuts, the one with the fewest vertices there.

        The network is used up. Every path from source to sink must have an edge that may be cut.
        """
        while True:
            distances = self._distances()
            if distances[SINK] < 0:
                return {v for v, distance in enumerate(distances) if distance >= 0}
            self._fill(distances)

    def _distances(self) -> list[int]:
        """How many edges that take more each vertex is from the source; -1 where none lead."""
        made = [-1] * len(self._leaving)
        made[SOURCE] = 0
        reached = [SOURCE]
        for v in reached:
            for i in self._leaving[v]:
                end = self._ends[i]
                if self._rest[i] and made[end] < 0:
                    made[end] = made[v] + 1
                    reached.append(end)
        return made

    def _fill(self, distances: list[int]) -> None:
        """Fill paths along which the distance grows by one at each edge."""
        leaving, ends, rest = self._leaving, self._ends, self._rest
        tried = [0] * len(leaving)
        path: list[int] = []
        v = SOURCE
        while True:
            if v == SINK:
                flow = min([rest[i] for i in path])
                for i in path:
                    rest[i] -= flow
                    rest[i ^ 1] += flow
                full = next(k for k, i in enumerate(path) if not rest[i])
                v = ends[path[full] ^ 1]
                del path[full:]
            elif tried[v] < len(leaving[v]):
                i = leaving[v][tried[v]]
                if rest[i] and distances[ends[i]] == distances[v] + 1:
                    path.append(i)
                    v = ends[i]
                else:
                    tried[v] += 1
            elif v == SOURCE:
                return
            else:
                v = ends[path.pop() ^ 1]
                tried[v] += 1
