"""Plans of training steps: against plans written by hand, as files, explained, changed, compared and modelled."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from benchmarks.networks import make
from benchmarks.planner import data_parallel, hand_plans, transformer

import mycelia as ms
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError
from mycelia.parallel.planner import Level, Machine, MeshShape, NothingFitsError, Plan, Task, plan, shaped, stage_task
from mycelia.parallel.planner.costs import Setting
from mycelia.parallel.planner.plan import plan_of
from mycelia.parallel.planner.problem import Problem
from mycelia.parallel.planner.solve import Program, colours, least_memory, solve
from mycelia.parallel.planner.stages import divide, makespan, simulate
from mycelia.parallel.planner.units import FORWARD, UPDATE, network_of

MACHINE = Machine("eight", (Level("link", 8, 1e-6, 1e-11),), {"default": 1e12}, 1e11, 2**34, 1e-7)


def gpt(layers: int = 3) -> Task:
    """A training step of a transformer, small and deep enough to cut."""
    return transformer(layers, 256, 4, 64, 32, 2048)


@cache
def gpt_task() -> Task:
    return gpt()


@cache
def mlp_task() -> Task:
    work = make("mlp")
    return stage_task(work.step(), work.x, work.y)


@cache
def gpt_plan() -> Plan:
    return plan(gpt_task(), MACHINE, devices=4, stages=[1, 2])


# against plans by hand and bounds --------------------------------------------------------------------------------


def test_plans_by_hand_are_not_faster() -> None:
    found = gpt_plan()
    hand = hand_plans(gpt_task(), MACHINE, 4, 32)
    assert {name.split(" ")[0] for name in hand} >= {"data", "Megatron", "1F1B"}
    for name, other in hand.items():
        assert found.seconds <= other.seconds * (1 + 1e-3), name


def test_a_deep_step_is_within_a_hundredth_of_the_bound() -> None:
    task = transformer(8, 256, 4, 64, 32, 2048)
    problem = Problem(network_of(task), Setting(MeshShape(("data", "model"), (2, 2)), MACHINE))
    found = solve(problem)
    _, bound, _ = Program(problem, colours(problem)).solve(relaxed=True)
    assert found.seconds < 60
    assert bound * (1 - 1e-6) <= found.cost <= 1.01 * bound


def test_data_parallelism_costs_its_gradients() -> None:
    task = mlp_task()
    problem = Problem(network_of(task), Setting(MeshShape(("data",), (4,)), MACHINE))
    made = plan_of(problem, data_parallel(problem), 1, "1f1b", mode="by hand", bound=0.0, limit=None)
    gradients = 4 * sum(v.type.size for v, n in zip(task.graph.params, task.names, strict=True) if n in task.trained)
    moments = 3  # two moments beside each parameter, which are trained by nobody
    assert gradients >= 4 * (784 * 512 + 512 * 512 + 512 * 10)
    whole = 4 * (784 * 512 + 512 + 512 * 512 + 512 + 512 * 10 + 10)
    assert made.bytes_sent()["all_reduce"] == pytest.approx(2 * 3 / 4 * whole, rel=1e-3)
    assert problem.static_bytes(data_parallel(problem)) == pytest.approx(moments * whole, rel=1e-3)
    assert made.inputs["x"] == ("data", None)


def test_less_memory_is_bought_with_time() -> None:
    problem = Problem(network_of(gpt_task()), Setting(MeshShape(("data",), (4,)), MACHINE))
    free = solve(problem)
    limit = (free.peak + 2 * least_memory(problem, free.peak)) / 3
    tight = solve(problem, limit)
    assert tight.fits
    assert limit < 0.97 * free.peak
    assert tight.peak <= limit
    assert tight.cost > free.cost


# stages ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b"])
@pytest.mark.parametrize(("stages", "m"), [(1, 1), (2, 4), (4, 8), (4, 4)])
def test_equal_stages_take_what_the_formula_says(stages: int, m: int, schedule: str) -> None:
    taken = simulate([1.0] * stages, [2.0] * stages, [0.0] * (stages - 1), m, schedule)
    assert taken == (m + stages - 1) * 3.0
    with pytest.raises(ArgumentValueError, match="'schedule' got 'other'"):
        simulate([1.0], [1.0], [], 1, "other")
    with pytest.raises(ArgumentValueError, match="'micro_batches' got 0"):
        simulate([1.0], [1.0], [], 0, schedule)


def test_stages_hold_everything_once() -> None:
    network = network_of(gpt_task())
    problem = Problem(network, Setting(MeshShape(("data",), (2,)), MACHINE, 4, 2))
    solution = data_parallel(problem)
    one, two = divide(problem, solution, 1, "1f1b"), divide(problem, solution, 2, "1f1b")
    assert sum(s.forward for s in two) == pytest.approx(one[0].forward)
    assert sum(s.backward for s in two) == pytest.approx(one[0].backward)
    assert sum(s.static for s in two) == pytest.approx(one[0].static)
    assert 4 * (one[0].forward + one[0].backward) + one[0].once == pytest.approx(problem.cost(solution))
    longest = max(s.forward + s.backward for s in two)
    assert longest < 0.75 * (one[0].forward + one[0].backward)
    assert two[0].cut_bytes % (32 * 64 * 256 * 4 / 4 / 2) == 0
    assert 0 < two[0].cut_bytes <= 5 * 32 * 64 * 256 * 4 / 4 / 2  # at most: inside a layer, beside what passes it
    assert [s.in_flight for s in two] == [2, 1]
    assert makespan(two, 4, "1f1b") < makespan(one, 4, "1f1b")


def test_recomputing_takes_time_and_saves_memory() -> None:
    network = network_of(gpt_task())
    mesh = MeshShape(("data",), (2,))
    plain, again = (Problem(network, Setting(mesh, MACHINE, blocks=b)) for b in (0, 4))
    solution = data_parallel(plain)
    forward = divide(plain, solution, 1, "1f1b")[0].forward
    assert again.cost(solution) == pytest.approx(plain.cost(solution) + forward)
    assert again.memory(solution).max() < 0.9 * plain.memory(solution).max()


def test_rows_that_are_mixed_are_not_divided_in_time() -> None:
    work = make("r18", small=True)
    task = stage_task(work.step(), work.x, work.y)
    assert network_of(task).mixes_rows
    assert not network_of(mlp_task()).mixes_rows
    assert not network_of(gpt_task()).mixes_rows
    found = plan(task, MACHINE, devices=2)
    assert (found.stages, found.micro_batches) == (1, 1)
    assert "batch_norm" in found.explain().split("note:")[1]
    with pytest.raises(ArgumentValueError, match="'micro_batches' got 2; it takes 1"):
        plan(task, MACHINE, devices=2, micro_batches=2)


def test_phases_are_forward_backward_and_update() -> None:
    network = network_of(mlp_task())
    phases = [unit.phase for unit in network.units[network.inputs :]]
    assert phases.count(FORWARD) >= 4
    assert phases.count(UPDATE) >= 6
    states = {network.task.names[i] for i, _ in network.task.pairs}
    assert {n for n in states if n in network.task.trained}
    assert all(network.values[v].static for v in range(network.inputs) if network.task.kinds[v] == "state")


# plans as data ---------------------------------------------------------------------------------------------------


def test_every_result_of_every_node_has_a_layout() -> None:
    found = gpt_plan()
    graph = gpt_task().graph
    assert set(found.inputs) == set(gpt_task().names)
    for i, node in enumerate(graph.nodes):
        for k, value in enumerate(node.outputs):
            spec = found.constraints[i, k]
            assert len(spec) == value.type.rank
            axes = [a for entry in spec for a in ((entry,) if isinstance(entry, str) else entry or ())]
            assert len(set(axes)) == len(axes)
            for size, entry in zip(value.type.shape, spec, strict=True):
                names = (entry,) if isinstance(entry, str) else entry or ()
                over = [found.mesh.sizes[found.mesh.names.index(a)] for a in names]
                assert size % int(np.prod(over)) == 0


def test_a_plan_is_read_as_it_was_written(tmp_path: Path) -> None:
    found = gpt_plan()
    found.save(tmp_path / "plan.json")
    again = Plan.load(tmp_path / "plan.json", gpt_task())
    assert found.diff(again) == []
    assert again.seconds == pytest.approx(found.seconds)
    assert again.peak == pytest.approx(found.peak)
    assert again.constraints == found.constraints
    again.save(tmp_path / "again.json")
    first, second = ((tmp_path / n).read_text().split('"runners_up"')[0] for n in ("plan.json", "again.json"))
    assert first.replace(_bound(first), "") == second.replace(_bound(second), "")


def _bound(text: str) -> str:
    return next(line for line in text.splitlines() if '"cost"' in line)


def test_a_changed_plan_is_priced_anew_and_compared(tmp_path: Path) -> None:
    found = plan(mlp_task(), MACHINE, devices=2, stages=1)
    found.save(tmp_path / "plan.json")
    data = json.loads((tmp_path / "plan.json").read_text())
    label = next(name for name, row in data["units"].items() if name.split(" ")[1].startswith("dense"))
    other = "i" if data["units"][label]["choice"]["data"] != "i" else "-"
    data["units"][label]["choice"]["data"] = other
    (tmp_path / "changed.json").write_text(json.dumps(data))
    changed = Plan.load(tmp_path / "changed.json", mlp_task())
    assert changed.seconds > found.seconds
    lines = found.diff(changed)
    assert f"+ {label}: data={other} stage 0" in lines
    assert any(line.startswith("- seconds") for line in lines)


def test_what_a_plan_cannot_say_is_refused_all_at_once(tmp_path: Path) -> None:
    found = plan(mlp_task(), MACHINE, devices=2, stages=1)
    found.save(tmp_path / "plan.json")
    data = json.loads((tmp_path / "plan.json").read_text())
    labels = list(data["units"])[:2]
    for label in labels:
        data["units"][label]["choice"]["data"] = "nowhere"
    data["inputs"]["x"]["layout"] = [None, None, "data"]
    (tmp_path / "wrong.json").write_text(json.dumps(data))
    with pytest.raises(ArgumentValueError) as caught:
        Plan.load(tmp_path / "wrong.json", mlp_task())
    for part in (*labels, "data=nowhere", "x has layout", "may have"):
        assert part in str(caught.value)
    with pytest.raises(ArgumentValueError, match="the graph of the plan"):
        Plan.load(tmp_path / "plan.json", gpt_task())
    with pytest.raises(ArgumentValueError, match="a plan for another graph"):
        found.diff(gpt_plan())
    (tmp_path / "no.json").write_text("[]")
    with pytest.raises(ArgumentValueError, match=r"a file that Plan\.save wrote"):
        Plan.load(tmp_path / "no.json", mlp_task())


def test_a_plan_explains_itself() -> None:
    text = gpt_plan().explain()
    for part in ("plan for 4 devices", "operators that take the longest", "collectives in a step", "plans that lost",
                 "slower", "fullest device", "bytes a device sends"):  # fmt: skip
        assert part in text
    assert all(r.seconds >= gpt_plan().seconds * (1 - 1e-6) for r in gpt_plan().runners_up)


def test_more_devices_are_modelled() -> None:
    found = plan(gpt_task(), MACHINE, devices=4, mesh=MeshShape(("data",), (4,)))
    same = found.simulate(4, MACHINE.resized(4))
    assert same.seconds == pytest.approx(found.seconds)
    assert same.efficiency == pytest.approx(1.0)
    large, larger = (found.simulate(n) for n in (64, 1024))
    assert found.seconds < large.seconds <= larger.seconds
    assert 0 < larger.efficiency <= large.efficiency < 1
    with pytest.raises(ArgumentValueError, match="'devices' got 6; it takes a multiple of 4"):
        found.simulate(6)


def test_what_does_not_fit_says_how_much_is_missing_and_what_would_do() -> None:
    task = stage_task(ms.nn.Dense(4096, 4096), shaped((64, 4096)))
    needs = 4096 * 4096 * 4
    found = plan(task, MACHINE, devices=2, limit=0.75 * needs)
    assert found.inputs["weight"] in (("data", None), (None, "data"))
    with pytest.raises(NothingFitsError, match=r"on 2 devices.*lacks .*MiB for each device") as caught:
        plan(task, MACHINE, devices=2, limit=0.3 * needs)
    assert "it would fit on 4 devices" in str(caught.value)


def test_micro_batches_or_recomputing_are_found_when_memory_is_short() -> None:
    free = plan(gpt_task(), MACHINE, devices=1)
    tight = plan(gpt_task(), MACHINE, devices=1, limit=0.7 * free.peak)
    assert tight.blocks or tight.micro_batches > 1
    assert tight.peak <= 0.7 * free.peak
    assert tight.seconds > free.seconds


def test_other_modes_and_pins() -> None:
    pins = {"layers.layers.0.weight": ("data", None)}
    auto = plan(mlp_task(), MACHINE, devices=4, mesh=MeshShape(("data",), (4,)))
    outward = plan(mlp_task(), MACHINE, devices=4, mesh=MeshShape(("data",), (4,)), mode="sharding_propagation")
    assert outward.mode == "sharding_propagation"
    with pytest.warns(UserWarning, match="auto usually finds"):
        halved = plan(mlp_task(), MACHINE, devices=4, mesh=MeshShape(("data",), (4,)), mode="recursive_programming")
    assert "auto usually finds" in halved.explain()
    for other in (outward, halved):
        assert auto.seconds <= other.seconds * (1 + 1e-3)
    name = next(n for n in mlp_task().names if n.endswith("0.weight"))
    pinned = plan(mlp_task(), MACHINE, devices=4, mesh=MeshShape(("data",), (4,)), pins={name: pins.popitem()[1]})
    assert pinned.inputs[name] == ("data", None)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mode": "best"}, "'mode' got 'best'; it takes 'auto'"),
        ({"devices": 0}, "'devices' got 0"),
        ({"devices": 4, "stages": 3}, "'stages' got 3; it takes a divisor of 4"),
        ({"devices": 2, "schedules": ("zigzag",)}, "'schedules' got 'zigzag'"),
        ({"devices": 2, "stages": 2, "micro_batches": 7}, "'micro_batches' got 7; it takes numbers that divide 64"),
        ({"devices": 2, "pins": {"nobody": ("data",)}}, "a layout for 'nobody'"),
        ({"devices": 2, "pins": {"x": ("data", "data")}}, "the axis 'data' twice"),
        ({"devices": 3, "stages": 1, "pins": {"x": ("data", None)}}, r"'pins' got .*'x' of shape"),
    ],
)
def test_what_cannot_be_planned_is_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(ArgumentValueError, match=message):
        plan(mlp_task(), MACHINE, **options)  # type: ignore[arg-type]
    with pytest.raises(ArgumentTypeError, match="'task' got int"):
        plan(3, MACHINE)  # type: ignore[arg-type]
