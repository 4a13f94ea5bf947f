"""What collectives cost, and machines as files."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.parallel.ranks import run_ranks

from mycelia.core.errors import ArgumentValueError
from mycelia.parallel.planner import Level, Machine
from mycelia.parallel.planner.machine import bytes_sent, collective_seconds

NODES = Machine("nodes", (Level("node", 4, 1e-6, 1e-10), Level("net", 8, 1e-5, 1e-9)), {"float32": 1e12}, 1e11, 1e9)


@pytest.mark.parametrize("n", [2, 3, 4, 7, 8, 64])
def test_bytes_per_rank_are_the_least_that_can_be(n: int) -> None:
    share = (n - 1) / n
    assert bytes_sent("all_reduce", n, 1e6) == pytest.approx(2 * share * 1e6)
    for kind in ("all_gather", "reduce_scatter", "all_to_all"):
        assert bytes_sent(kind, n, 1e6) == pytest.approx(share * 1e6)
    assert bytes_sent("permute", n, 1e6) == 1e6
    assert bytes_sent("all_reduce", 1, 1e6) == 0


def test_long_messages_take_their_bytes_and_short_ones_their_rounds() -> None:
    long = collective_seconds("all_reduce", 8, 1e9, 1e-6, 1e-9)
    assert long == pytest.approx(2 * 7 / 8 * 1e9 * 1e-9, rel=1e-4)
    assert collective_seconds("all_reduce", 8, 1e-3, 1e-6, 1e-9) == pytest.approx(2 * 3 * 1e-6, rel=1e-3)
    assert collective_seconds("all_reduce", 6, 1e-3, 1e-6, 1e-9) == pytest.approx(2 * 5 * 1e-6, rel=1e-3)
    assert collective_seconds("all_to_all", 8, 1e-3, 1e-6, 1e-9) == pytest.approx(3 * 1e-6, rel=1e-3)
    # gathering after scattering is reducing
    pair = [collective_seconds(kind, 8, 1e7, 1e-6, 1e-9) for kind in ("reduce_scatter", "all_gather")]
    assert sum(pair) == pytest.approx(collective_seconds("all_reduce", 8, 1e7, 1e-6, 1e-9))
    with pytest.raises(ArgumentValueError, match=r"'kind' got 'shout'.*all_reduce"):
        collective_seconds("shout", 2, 1.0, 0.0, 0.0)


def test_an_axis_costs_what_its_slowest_link_does() -> None:
    assert NODES.devices == 32
    assert NODES.link((8, 4), 1) == (1e-6, 1e-10)  # neighbours, within a node
    assert NODES.link((8, 4), 0) == (1e-5, 1e-9)
    assert NODES.link((4, 2, 4), 1) == (1e-5, 1e-9)  # two nodes
    assert NODES.seconds("permute", 4, 1e6, (8, 4), 1) == pytest.approx(1e-6 + 1e-4)
    assert NODES.seconds("permute", 4, 1e6, (8, 4), 1, times=10) == pytest.approx(1e-5 + 1e-4)


def test_collectives_over_levels_send_little_over_the_slow_one() -> None:
    # 4 in a node, 8 nodes: scatter inside, reduce a quarter between the nodes, gather inside
    inside = collective_seconds("reduce_scatter", 4, 1e8, 1e-6, 1e-10)
    between = collective_seconds("all_reduce", 8, 1e8 / 4, 1e-5, 1e-9)
    assert NODES.seconds("all_reduce", 32, 1e8, (32,), 0) == pytest.approx(2 * inside + between)
    gathered = collective_seconds("all_gather", 8, 1e8 / 4, 1e-5, 1e-9) + inside
    assert NODES.seconds("all_gather", 32, 1e8, (32,), 0) == pytest.approx(gathered)
    assert NODES.seconds("all_to_all", 32, 1e8, (32,), 0) == collective_seconds("all_to_all", 32, 1e8, 1e-5, 1e-9)


def test_machines_are_read_as_they_were_written(tmp_path: Path) -> None:
    NODES.save(tmp_path / "machine.json")
    assert Machine.load(tmp_path / "machine.json") == NODES
    assert [p.name for p in tmp_path.iterdir()] == ["machine.json"]
    with pytest.raises(ArgumentValueError, match="'data' got a description without 'bandwidth'"):
        Machine.from_dict({"name": "x", "levels": [], "flops": {"default": 1.0}})


def test_a_machine_is_made_larger_from_the_outside() -> None:
    assert [level.size for level in NODES.resized(1024).levels] == [4, 256]
    assert [level.size for level in NODES.resized(4).levels] == [4]
    assert [level.size for level in NODES.resized(2).levels] == [2]
    with pytest.raises(ArgumentValueError, match="'devices' got 6; it takes a multiple of 4"):
        NODES.resized(6)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"flops": {}}, "'flops' got no rate"),
        ({"bandwidth": 0.0}, "'bandwidth' got 0.0; it takes numbers above 0"),
        ({"memory": -1.0}, "'memory' got -1.0"),
        ({"overhead": -1.0}, "'overhead' got -1.0"),
        ({"levels": (Level("x", 2, -1.0, 0.0),)}, "alpha and beta of 0 or more"),
    ],
)
def test_numbers_that_cannot_be_are_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(ArgumentValueError, match=message):
        Machine(**{**NODES.__dict__, **change})  # type: ignore[arg-type]


def test_one_rank_is_measured_without_links() -> None:
    machine = Machine.measure(memory=1e9)
    assert machine.devices == 1
    assert machine.levels == ()
    assert machine.memory == 1e9
    assert 1e8 < machine.rate("float32") < 1e14
    assert 1e8 < machine.bandwidth < 1e13
    assert 0 < machine.overhead < 1e-2


def test_ranks_measure_their_links_alike(tmp_path: Path) -> None:
    body = """
    comm.init()
    from mycelia.parallel.planner import Machine
    machine = Machine.measure(memory=1e9)
    machine.save(f"machine_{RANK}.json")
    """
    run_ranks(2, body, tmp_path)
    first, second = (Machine.load(tmp_path / f"machine_{rank}.json") for rank in range(2))
    assert first == second
    assert first.devices == 2
    (level,) = first.levels
    assert 0 < level.beta < 1e-6
    assert 0 <= level.alpha < 1
