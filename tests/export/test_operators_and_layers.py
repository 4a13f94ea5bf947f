"""Every operator can be written and read; every layer computes the same afterwards, bit for bit."""

from __future__ import annotations

import contextlib
import io

import numpy as np
import pytest
from tests.frontend.programs import forget, function_of, program_of
from tests.nn.test_layers_both_modes import made
from tests.oracles.nn_values import CASES, flat

import mycelia as ms
from mycelia import Tensor, nn
from mycelia.core import tree
from mycelia.core.errors import MyceliaError, UnsupportedError
from mycelia.export.mindir import read_program, write_program
from mycelia.frontend.program import Program, stage_program
from mycelia.ir.graph import ArrayConstant, Graph
from mycelia.ir.primitive import PRIMITIVES
from mycelia.ir.printer import graph_text

#: Operators that call Python code when they run.
CALL_PYTHON = {"gradient_hook", "host_call", "host_effect"}


def copied(program):
    sink = io.BytesIO()
    write_program(program, sink)
    return read_program(io.BytesIO(sink.getvalue()), "copy.mindir")


def sampled(op):
    """A graph with one node for each sample of the operator, its inputs constants."""
    graph = Graph(op.name)
    constant = PRIMITIVES["constant"]
    for sample in op.samples() if callable(op.samples) else op.samples:
        arrays = [np.asarray(a) for a in sample.inputs]
        for wanted in (np.float64, np.float32):  # samples are in float64, for any dtype that the operator takes
            cast = [a.astype(wanted) if a.dtype == np.float64 else a for a in arrays]
            inputs = [graph.add_node(constant, (), {"value": ArrayConstant(a)}).outputs[0] for a in cast]
            with contextlib.suppress(MyceliaError):
                graph.add_node(op, tuple(inputs), dict(sample.attrs))
                break
    return graph


def as_program(graph):
    return Program(graph.name, graph, [], tree.flatten(())[1], [], tree.flatten(())[1], [])


SAMPLED = sorted(n for n, op in PRIMITIVES.items() if op.samples and n not in CALL_PYTHON)


def test_every_operator():
    assert len(SAMPLED) > 250
    for name in SAMPLED:
        graph = sampled(PRIMITIVES[name])
        found = copied(as_program(graph)).graph
        assert any(node.op.name == name for node in found.nodes), name
        assert len(found.nodes) == len(graph.nodes)
        for one, other in zip(found.nodes, graph.nodes, strict=True):
            assert one.op is other.op
            assert [v.type for v in one.outputs] == [v.type for v in other.outputs]
            assert list(one.attrs) == list(other.attrs)
            for a, b in zip(one.attrs.values(), other.attrs.values(), strict=True):
                assert type(a) is type(b), name
                assert repr(a) == repr(b), name
                assert a == b or a != a, name


@pytest.mark.parametrize("name", sorted(CALL_PYTHON))
def test_operators_that_call_python(name):
    graph = sampled(PRIMITIVES[name])
    with pytest.raises(UnsupportedError, match="a file cannot hold the attribute"):
        copied(as_program(graph))


@pytest.mark.parametrize("seed", range(25))
def test_random_programs(seed):
    """The graph that is read is the one that was written, line by line, with its nest and state."""
    function = function_of(program_of(seed, 18))
    try:
        program = stage_program(function, (Tensor([1.0, 2.0]), Tensor(1.0), Tensor(1), 3), "export")
        found = copied(program)
    finally:
        forget(function)
    text = graph_text(program.graph, locations=False)
    assert graph_text(found.graph, locations=False) == text
    assert [len(v.type.shape) for v in found.graph.outputs] == [len(v.type.shape) for v in program.graph.outputs]
    for name in ("in_tree", "inputs", "out_tree", "outputs", "state_writes", "input_writes", "input_names"):
        assert getattr(found, name) == getattr(program, name), name
    assert [(s.kind, s.name, s.type) for s in found.state] == [(s.kind, s.name, s.type) for s in program.state]


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_every_layer(case):
    cell, inputs = made(case)
    again = nn.GraphCell(copied(stage_program(cell, inputs, "export")))
    ms.set_context(mode=ms.GRAPH_MODE)
    ms.set_seed(3)
    expected = flat(cell(*inputs))
    ms.set_seed(3)
    found = flat(again(*[x for x in inputs if x is not None]))
    for one, other in zip(found, expected, strict=True):
        assert one.asnumpy().tobytes() == other.asnumpy().tobytes()
    written = {p.name: p.asnumpy() for p in cell.untrainable_params()}
    for p in again.untrainable_params():
        assert p.asnumpy().tobytes() == written[p.name].tobytes()
