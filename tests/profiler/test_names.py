"""Kernels are named by what they were made of: read from programs as XLA prints them."""

from __future__ import annotations

import pytest

from mycelia.core.errors import SourceLocation
from mycelia.ir.parser import parse_graph
from mycelia.profiler.kernels import Clock, Kernel, Kernels, read
from mycelia.profiler.names import ProgramNames, ProgramText

PROGRAM = """HloModule jit_step, is_scheduled=true, entry_computation_layout={(f32[4,4]{1,0})->f32[4,4]{1,0}}

%fused_computation (param_0: f32[4,4], param_1.1: f32[4]) -> f32[4,4] {
  %param_0 = f32[4,4]{1,0} parameter(0)
  %neg.1 = f32[4,4]{1,0} negate(%param_0), metadata={op_name="jit(step)/neg.0/neg" stack_frame_id=2}
  ROOT %tanh.1 = f32[4,4]{1,0} tanh(%neg.1), metadata={op_name="jit(step)/jit(inner)/tanh.1/tanh"}
}

%body (p: (f32[4,4], s32[])) -> (f32[4,4], s32[]) {
  %p = (f32[4,4]{1,0}, s32[]) parameter(0)
  ROOT %t = (f32[4,4]{1,0}, s32[]) tuple(%p)
}

ENTRY %main.4 (x.1: f32[4,4]) -> f32[4,4] {
  %x.1 = f32[4,4]{1,0} parameter(0), metadata={op_name="x"}
  %tanh_fusion = f32[4,4]{1,0} fusion(%x.1), kind=kLoop, calls=%fused_computation, metadata={op_name="jit(step)/jit(inner)/tanh.1/tanh"}
  %call.7 = f32[4,4]{1,0} custom-call(%tanh_fusion), custom_call_target="kernel", metadata={op_name="jit(step)/vmap(exp.2)/ffi_call"}
  %copy.3 = f32[4,4]{1,0} copy(%call.7)
  %other = f32[4,4]{1,0} negate(%copy.3), metadata={op_name="jit(step)/exp.0/neg"}
  %loop = (f32[4,4]{1,0}, s32[]) while(%other), condition=%body, body=%body
  ROOT %plain = f32[4,4]{1,0} add(%other, %other), metadata={op_name="jit(step)/add"}
}
"""  # noqa: E501


@pytest.fixture
def names():
    graph = parse_graph(
        """graph step(%0: float32[4, 4]) {
          %1 = neg(%0) : float32[4, 4]
          %2 = tanh(%1) : float32[4, 4]
          %3 = exp(%2) : float32[4, 4]
          return %3
        }"""
    )
    for i, node in enumerate(graph.nodes):
        node.location = SourceLocation("net.py", 10 + i, "construct")
    return ProgramNames(PROGRAM, graph)


@pytest.mark.parametrize(
    ("kernel", "name", "line"),
    [
        ("tanh_fusion", "tanh+neg", 11),
        ("call.7", "exp", 12),  # a library call, mapped over rows
        ("copy.3", "copy for exp", 12),  # without a path of its own: what it stands beside
        ("other", "exp", None),  # node 0 is no exp: a program from another graph
        ("plain", "add for exp", 12),  # one without a scope
        ("loop", "while for exp", 12),
        ("not there", "not there", None),
    ],
)
def test_labels(names, kernel, name, line):
    label = names.label(kernel)
    assert label.name == name
    assert (None if label.line is None else label.line.line) == line


def test_a_fusion_tells_all_its_operators(names):
    label = names.label("tanh_fusion")
    assert [(o.name, o.line.short) for o in label.operators] == [("tanh", "net.py:11"), ("neg", "net.py:10")]


def test_loops_have_no_time_of_their_own(names):
    assert names.label("loop").control
    assert not names.label("call.7").control


def test_instructions_are_read():
    text = ProgramText(PROGRAM)
    assert text.instructions["tanh_fusion"].opcode == "fusion"
    assert text.instructions["tanh_fusion"].operands == ["x.1"]
    assert text.instructions["loop"].called == ["body", "body"]
    assert [i.name for i in text.inside("tanh_fusion")] == ["param_0", "neg.1", "tanh.1"]


class Event:
    def __init__(self, name, start, duration, **stats):
        self.name, self.start_ns, self.duration_ns, self.stats = name, start, duration, list(stats.items())


class Line:
    def __init__(self, name, events):
        self.name, self.events = name, events


class Plane:
    def __init__(self, lines):
        self.lines = lines


class Data:
    def __init__(self, *lines):
        self.planes = [Plane(lines)]


def kernel_event(name, start, duration, run=1, flow=0, program=5):
    return Event(name, start, duration, hlo_op=name, hlo_module="jit_f", program_id=program, run_id=run, _p=flow)


def test_kernels_of_a_thread_are_nested_and_have_times_of_their_own():
    events = [kernel_event("loop", 0, 100), kernel_event("x", 10, 30), kernel_event("y", 50, 20)]
    found = read(Data(Line("a", events)), Clock())
    assert [(k.name, k.own) for k in found.kernels] == [("loop", 50), ("x", 30), ("y", 20)]


def test_a_kernel_that_goes_on_elsewhere_ends_there_but_before_the_next():
    found = read(
        Data(
            Line("a", [kernel_event("x", 0, 10, flow=1), kernel_event("y", 50, 10, flow=2)]),
            Line("b", [Event("end: x", 30, 1, _c=1), Event("end: y", 90, 1, _c=2), Event("Pool::Wait", 0, 9)]),
        ),
        Clock(),
    )
    assert [(k.name, k.start, k.end) for k in found.kernels] == [("x", 0, 30), ("y", 50, 90)]
    cut = read(
        Data(
            Line("a", [kernel_event("x", 0, 10, flow=1), kernel_event("y", 20, 10, flow=2)]),
            Line("b", [Event("end: x", 30, 1, _c=1)]),
        ),
        Clock(),
    )
    assert [(k.name, k.start, k.end) for k in cut.kernels] == [("x", 0, 20), ("y", 20, 30)]


def test_the_clocks_are_tied_by_the_annotations_that_bound_them_best():
    clock = Clock()
    clock.between = [[(1000, 1205), (1205, 1235)], [(2205, 2225)]]  # the first was made long after its time
    marks = [Event("mycelia.profiler clock", start, 10) for start in (190, 210, 1210)]
    found = read(Data(Line("a", [*marks, kernel_event("x", 200, 10)])), clock)
    assert [(k.start, k.end) for k in found.kernels] == [(1200, 1210)]


def test_clocks_that_drift_are_tied_at_both_ends():
    clock = Clock()
    clock.between = [[(1000, 1010)], [(3000, 3010)]]
    marks = [Event("mycelia.profiler clock", start, 10) for start in (0, 1000)]
    found = read(Data(Line("a", [*marks, kernel_event("x", 500, 100)])), clock)
    assert [(k.start, k.end) for k in found.kernels] == [(2000, 2200)]


@pytest.mark.parametrize("start", [7, 2**31 - 2, -2, 2**32 - 2], ids=["plain", "sign", "negative", "greatest"])
def test_runs_are_in_the_order_of_their_numbers(start):
    numbers = [(start + i) % 2**32 for i in range(4)]
    numbers = [n - 2**32 if n >= 2**31 else n for n in numbers]  # as the profile shows them
    kernels = [Kernel(f"k{i}", "jit_f", 5, n, 0, 100 - i, 101 - i) for i, n in enumerate(numbers)]
    (program,) = Kernels(kernels, ["a"]).programs()
    assert [run[0].name for run in program.runs] == ["k0", "k1", "k2", "k3"]


def test_programs_that_share_a_number_are_told_apart_by_their_runs():
    kernels = [Kernel("k", "jit_f", 5, n, 0, n, n + 1) for n in (10, 11, 900_000_000, 900_000_001, 900_000_002)]
    kernels.append(Kernel("k", "jit_g", 5, 12, 0, 12, 13))
    assert [len(p.runs) for p in Kernels(kernels, ["a"]).programs()] == [2, 1, 3]
