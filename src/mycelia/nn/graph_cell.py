"""A Cell that runs an exported graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mycelia.compiler.run import run_graph
from mycelia.core.errors import ArgumentTypeError, DTypeError, ShapeError, StateError, UnsupportedError
from mycelia.frontend.effects import raise_pending
from mycelia.frontend.program import PARAMETER, RANDOM, Program, StateSpec, call_program, random_stream
from mycelia.ir.control import call_p
from mycelia.nn.cell import Cell
from mycelia.tensor import Parameter, Tensor
from mycelia.tensor.dispatch import apply, set_value
from mycelia.tensor.mode import is_staging
from mycelia.tensor.tensor import wrap


class GraphCell(Cell):
    """Runs a graph that :func:`mycelia.load` read, with parameters of its own.

    It is called as the exported network was, with tensors of the same shapes and dtypes, in both modes; inside
    a compiled function it is one call of its graph. Gradients go through it, and optimizers, checkpoints and
    other Cells treat it as any Cell. The graph computes as it was exported: what depends on training
    mode (dropout, the statistics of batch normalization) was decided then, and ``set_train`` does not
    change it. Random numbers come from the streams of the process, which ``set_seed`` sets.

    Args:
        graph: what :func:`mycelia.load` returned. Several GraphCells of one graph share nothing that changes.
        params_init: values for parameters, by name (Tensors or Parameters of the same shape and dtype); names
            that the graph does not have are ignored.
        obf_random_seed: None; obfuscated graphs are not supported.

    Attributes:
        exported_in_training: whether the graph was exported in training mode.
        user_info: the notes that were exported with it (str to str).

    Raises:
        ArgumentTypeError: ``graph`` was not loaded, or ``params_init`` is not a dict of tensors by name.
        ShapeError, DTypeError: a value of ``params_init`` does not fit its parameter; an input differs
            from the exported one (when called).

    >>> import mycelia as ms, os, tempfile
    >>> file = os.path.join(tempfile.mkdtemp(), "double.mindir")
    >>> ms.export(lambda x: x * 2, ms.Tensor([1.0, 2.0]), file_name=file, file_format="MINDIR")
    >>> net = ms.nn.GraphCell(ms.load(file))
    >>> print(net(ms.Tensor([3.0, 4.0])))
    [6. 8.]
    """

    def __init__(
        self, graph: Program, params_init: dict[str, Tensor] | None = None, obf_random_seed: int | None = None
    ) -> None:
        super().__init__()
        if not isinstance(graph, Program):
            raise ArgumentTypeError("GraphCell", "graph", got=type(graph).__name__, takes="what mycelia.load returned")
        if obf_random_seed is not None:
            raise UnsupportedError("GraphCell", "obf_random_seed", got=repr(obf_random_seed), takes="None")
        values = _checked_values(graph, params_init)
        own = self.__dict__
        own["_program"] = graph
        own["_buffers"] = {}
        for spec in graph.state:
            if spec.kind == RANDOM:
                continue
            assert spec.value is not None
            data = wrap(spec.value._value)
            if spec.kind == PARAMETER:
                made = Parameter(values.get(spec.name, data), name=spec.name, requires_grad=spec.requires_grad)
                self._params[spec.name] = made
                if spec.name not in own and not hasattr(type(self), spec.name):
                    own[spec.name] = made
            else:
                own["_buffers"][spec.name] = data
        own["training"] = graph.training

    @property
    def exported_in_training(self) -> bool:
        """Whether the graph was exported in training mode."""
        return self._program.training

    @property
    def user_info(self) -> dict[str, str]:
        """The notes that were exported with the graph."""
        return dict(self._program.user_info)

    @property
    def exported_input_names(self) -> list[str]:
        """The names of the arguments, as the exported network called them."""
        return list(self._program.input_names)

    @property
    def named_buffers(self) -> dict[str, Tensor]:
        """The tensors of the graph that are not parameters, by name."""
        return dict(self._buffers)

    def construct(self, *inputs: Any, **named: Any) -> Any:
        program: Program = self._program
        if named:
            inputs = _positional(program, inputs, named)
        state = [self._tensor_of(spec) for spec in program.state]
        return call_program(program, self._run_graph, inputs, state, "GraphCell", set_value)

    def _tensor_of(self, spec: StateSpec) -> Tensor:
        if spec.kind == RANDOM:
            return random_stream(spec.stream)
        held: Tensor | None = self._params[spec.name] if spec.kind == PARAMETER else self._buffers[spec.name]
        if held is None:
            raise StateError("GraphCell", message=f"the parameter '{spec.name}' of the graph was removed")
        return held

    def _run_graph(self, tensors: Sequence[Tensor]) -> Sequence[Tensor]:
        program: Program = self._program
        if is_staging():
            found: Sequence[Tensor] = apply(call_p, *tensors, graph=program.graph)
            return found
        results = run_graph(program.graph, tensors)
        if program.raises:
            raise_pending()
        return results

    def extend_repr(self) -> str:
        return repr(self._program)[1:-1] if "_program" in self.__dict__ else ""


def _positional(program: Program, inputs: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
    """The arguments in order, some of which were given by name."""
    left = program.input_names[len(inputs) :]
    for name in named:
        if name not in left:
            twice = name in program.input_names
            raise ArgumentTypeError(
                "GraphCell", name, got="two values" if twice else "a value",
                takes="one" if twice else f"nothing: the inputs are {', '.join(program.input_names)}",
            )  # fmt: skip
    return (*inputs, *[named[name] for name in left if name in named])


def _checked_values(graph: Program, params_init: Any) -> dict[str, Tensor]:
    """The values of ``params_init`` for parameters that the graph has."""
    if params_init is None:
        return {}
    if not isinstance(params_init, dict):
        raise ArgumentTypeError("GraphCell", "params_init", got=type(params_init).__name__, takes="a dict or None")
    for name, value in params_init.items():
        if not isinstance(name, str) or not isinstance(value, Tensor):
            raise ArgumentTypeError(
                "GraphCell", "params_init", got=f"{name!r}: a {type(value).__name__}", takes="Tensors by name"
            )
    types = {spec.name: spec.type for spec in graph.state if spec.kind == PARAMETER}
    known = {name: value for name, value in params_init.items() if name in types}
    for name, value in known.items():
        where = f"params_init['{name}']"
        if value.shape != types[name].shape:
            raise ShapeError("GraphCell", where, got=f"shape {value.shape}", takes=f"shape {types[name].shape}")
        if value.dtype is not types[name].dtype:
            raise DTypeError("GraphCell", where, got=f"dtype {value.dtype}", takes=f"dtype {types[name].dtype}")
    return known
