"""Measuring: contenders take turns in rounds, so that what else the machine does hits all of them alike.

All workers of one measurement are set up first, one after the other; each then runs a first step (compiling included)
and a second one, which tells how many steps make a turn of about ``TURN_SECONDS``. Each round starts with another
contender. A ratio is the median over rounds of a contender's median step over that of Mycelia's Graph mode in the
same round.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from benchmarks.peers import BASE, Contender, Peer, PeerError, PeerSlowError, not_done

TURN_SECONDS = 0.25
MOST_STEPS = 50
#: Relative differences allowed between the frameworks' losses of the first step, or mean squares of logits.
TOLERANCE = {"f32": 1e-4, "bf16": 0.03}


@dataclass
class Options:
    """What holds for a whole run.

    Attributes:
        threads: for each contender.
        rounds: turns of each contender.
        small: whether the networks are tiny.
        answer_limit: seconds until the first step has ended, from the start of the process.
        step_budget: seconds of timed steps.
        step_limit: seconds that a later step, or a turn, may take.
    """

    threads: int = 2
    rounds: int = 10
    small: bool = False
    answer_limit: float = 300.0
    step_budget: float = 60.0
    step_limit: float = 20.0


@dataclass
class Result:
    """One contender on one workload: times in milliseconds, memory in bytes; ``error`` if it was not measured.

    Attributes:
        slower_than_ms: what one step took at least, if it was stopped for that.
        ratio: the median over rounds of its time over that of Mycelia's Graph mode; ``least_ratio`` of least times.
        of_peak: its rate over that of the fastest matrix product.
        memory: the most that was resident; ``imported`` what was after the import, ``growth`` the difference,
            ``step_memory`` the most while steps were timed.
        turns: the times of each round; None where it did not take its turn.
    """

    network: str
    job: str
    precision: str
    contender: str
    error: str | None = None
    slower_than_ms: float | None = None
    version: str | None = None
    parameters: int | None = None
    value: float | None = None
    agrees: bool | None = None
    first_s: float | None = None
    median_ms: float | None = None
    least_ms: float | None = None
    steps: int = 0
    ratio: float | None = None
    least_ratio: float | None = None
    flops: int | None = None
    gflops: float | None = None
    of_peak: float | None = None
    memory: int | None = None
    imported: int | None = None
    growth: int | None = None
    step_memory: int | None = None
    turns: list[list[float] | None] = field(default_factory=list)


@dataclass
class _Runner:
    """A worker in the middle of a measurement."""

    peer: Peer
    result: Result
    second: float
    limit: float
    spent: float = 0.0

    @property
    def count(self) -> int:
        """How many steps make a turn."""
        return max(1, min(MOST_STEPS, round(TURN_SECONDS / self.second)))

    def turn(self, budget: float) -> None:
        """A turn of steps; none if the budget of seconds would not last for another one."""
        if self.spent and self.spent + self.count * self.second > budget:
            self.result.turns.append(None)
            return
        found = self.peer.ask("step", self.limit, count=self.count)["ms"]
        self.spent += sum(found) / 1e3
        self.result.turns.append(found)


def measure(
    name: str, job: str, precision: str, asked: list[Contender], options: Options, say: Callable[[str], None]
) -> list[Result]:
    """Measure one job of one network at one precision; contenders that fail are ended and have an ``error``.

    Those that have no program for the job or the precision are left out.
    """
    results, runners = [], []
    try:
        for contender in asked:
            if not_done(contender.framework, job, precision):
                continue
            result = Result(name, job, precision, contender.label)
            results.append(result)
            say(f"{name} {job} {precision}: {contender.label} starts")
            try:
                runner = _started(contender, result, options)
            except PeerError as error:
                result.error = str(error)
                continue
            runners.append(runner)
        for number in range(options.rounds):
            say(f"{name} {job} {precision}: round {number + 1} of {options.rounds}")
            shift = number % len(runners) if runners else 0
            for runner in runners[shift:] + runners[:shift]:
                if runner.result.error is None:
                    _tried(runner, partial(runner.turn, options.step_budget))
        for runner in runners:
            if runner.result.error is None:
                _tried(runner, partial(_finish, runner))
    finally:
        for runner in runners:
            runner.peer.close()
    summarize(results)
    return results


def _tried(runner: _Runner, act: Callable[[], None]) -> None:
    try:
        act()
    except PeerError as error:
        runner.result.error = str(error)
        runner.peer.close()


def _started(contender: Contender, result: Result, options: Options) -> _Runner:
    """A worker that has run two steps."""
    until = time.monotonic() + options.answer_limit

    def left() -> float:
        return max(0.0, until - time.monotonic())

    late = f"the first step had not ended {options.answer_limit:g} s after the start"
    try:
        peer = Peer(contender.framework, contender.python, options.threads, options.answer_limit)
    except PeerSlowError:
        raise PeerSlowError(late) from None
    try:
        try:
            about: dict[str, Any] = peer.ask(
                "setup", left(), workload=result.network, small=options.small, mode=contender.mode, job=result.job,
                precision=result.precision,
            )  # fmt: skip
            result.version, result.parameters = about["version"], about["parameters"]
            result.first_s = peer.ask("step", left(), count=1)["ms"][0] / 1e3
        except PeerSlowError:
            raise PeerSlowError(late) from None
        result.value = peer.ask("value")["value"]
        try:
            second = peer.ask("step", options.step_limit, count=1)["ms"][0] / 1e3
        except PeerSlowError:
            result.slower_than_ms = options.step_limit * 1e3
            raise PeerSlowError(f"a step took more than {options.step_limit:g} s") from None
        peer.ask("forget_peak")
    except BaseException:
        peer.close()
        raise
    return _Runner(peer, result, second, options.step_limit)


def _finish(runner: _Runner) -> None:
    result, found = runner.result, runner.peer.ask("memory")
    result.memory, result.imported, result.step_memory = found["peak"], found["imported"], found["since"]
    if result.imported is not None:
        result.growth = found["peak"] - result.imported
    if runner.result.contender == BASE:
        runner.result.flops = runner.peer.ask("flops")["flops"]


def summarize(results: list[Result]) -> None:
    """Medians, ratios, rates, and whether all agree with Mycelia's Graph mode, from the turns of one measurement."""
    base = next((r for r in results if r.contender == BASE and r.error is None and r.turns), None)
    for result in results:
        times = [t for turn in result.turns for t in turn or ()]
        if result.error is not None or not times:
            continue
        result.steps, result.median_ms, result.least_ms = len(times), statistics.median(times), min(times)
        if base is None:
            continue
        result.ratio = ratio_of(result, base)
        if result.ratio is not None:
            result.least_ratio = result.least_ms / min(t for turn in base.turns for t in turn or ())
        if base.flops is not None:
            result.flops = base.flops
            result.gflops = base.flops / result.median_ms / 1e6
        if result.value is not None and base.value is not None:
            near = abs(result.value - base.value) <= TOLERANCE[result.precision] * abs(base.value)
            result.agrees = near and result.parameters == base.parameters


def ratio_of(one: Result, other: Result) -> float | None:
    """The median over rounds of one's median time over the other's; None if they took no turn together."""
    both = [(a, b) for a, b in zip(one.turns, other.turns, strict=True) if a and b]
    return statistics.median(statistics.median(a) / statistics.median(b) for a, b in both) if both else None


@dataclass
class Machine:
    """What was found before measuring: GFLOP/s by precision and library, and frameworks that cannot be started."""

    rates: dict[str, dict[str, float]]
    missing: dict[str, str]

    def peak(self, precision: str) -> float | None:
        """The highest rate of a precision."""
        return max(self.rates.get(precision, {}).values(), default=None)

    def include(self, rates: dict[str, dict[str, float]]) -> None:
        """Take the higher one of every rate and an earlier one."""
        for precision, found in rates.items():
            own = self.rates.setdefault(precision, {})
            own |= {library: max(rate, own.get(library, 0.0)) for library, rate in found.items()}

    def compare(self, results: list[Result]) -> None:
        """Set the share of the peak that each result reaches."""
        for result in results:
            highest = self.peak(result.precision)
            if result.gflops is not None and highest:
                result.of_peak = result.gflops / highest


def look_around(asked: list[Contender], precisions: list[str], options: Options, side: int, seconds: float) -> Machine:
    """Start each framework once and time large matrix products with it."""
    machine = Machine({p: {} for p in precisions}, {})
    for framework, contender in {c.framework: c for c in asked}.items():
        try:
            peer = Peer(framework, contender.python, options.threads, options.answer_limit)
        except PeerError as error:
            machine.missing[framework] = str(error)
            continue
        try:
            for precision in precisions:
                machine.rates[precision] |= peer.ask("peak", precision=precision, side=side, seconds=seconds)["rates"]
        except PeerError as error:
            machine.missing[framework] = str(error)
        finally:
            peer.close()
    return machine
