"""Cell: a network or a part of one.

A Cell owns parameters and other Cells, found by attribute. Calling it runs ``construct``: at once in
PYNATIVE_MODE, as one compiled graph in GRAPH_MODE. Parameters are named by their path of attributes
(``layers.0.weight``), assigned as Cells are put into Cells.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from mycelia.autodiff.custom import custom_vjp
from mycelia.core.dtypes import DType, as_dtype
from mycelia.core.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    AttributeMissingError,
    MissingKeyError,
    StateError,
    shown_traceback,
)
from mycelia.frontend.convert import convert
from mycelia.frontend.explain import leave
from mycelia.frontend.shapes import check_inputs
from mycelia.nn import call_wrappers
from mycelia.parallel.shard import shard
from mycelia.tensor import Parameter, Tensor, dispatch
from mycelia.tensor.mode import PLAIN, STAGE, current_builder, state
from mycelia.tensor.tensor import HookHandle, bump_epoch, check_bool

C = TypeVar("C", bound="Cell")


class ParameterTuple(tuple[Parameter, ...]):
    """Parameters as a tuple; put into a Cell's attribute, they become its own.

    >>> import mycelia as ms
    >>> len(ms.ParameterTuple([ms.Parameter(ms.Tensor(1.0), name="a")]))
    1
    """

    __slots__ = ()

    def __new__(cls, iterable: Iterable[Parameter]) -> ParameterTuple:
        items = tuple(iterable)
        for p in items:
            if not isinstance(p, Parameter):
                raise ArgumentTypeError(
                    "ParameterTuple", "iterable", got=f"an element of type {type(p).__name__}", takes="Parameters"
                )
        return super().__new__(cls, items)

    def clone(self, prefix: str, init: Any = "same") -> ParameterTuple:
        """Copies named ``prefix.NAME`` holding ``"same"`` data, ``"zeros"``, ``"ones"`` or a number."""
        made = []
        for p in self:
            q = p.clone(init)
            q.name = f"{prefix}.{p.name}"
            made.append(q)
        return ParameterTuple(made)


class Cell:
    """Base class of networks and layers.

    A subclass creates parameters and layers in ``__init__`` (after ``super().__init__()``) and computes in
    ``construct``. A Cell starts in inference mode.

    Args:
        auto_prefix: name the parameters of child Cells by the path of attributes.
        flags: kept for compatibility.

    Raises:
        AttributeMissingError: a parameter or Cell is assigned before ``super().__init__()``.

    >>> import mycelia as ms
    >>> class Net(ms.nn.Cell):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.dense = ms.nn.Dense(3, 2)
    ...
    ...     def construct(self, x):
    ...         return ms.ops.relu(self.dense(x))
    >>> net = Net()
    >>> net(ms.ops.ones((4, 3))).shape
    (4, 2)
    >>> [p.name for p in net.get_parameters()]
    ['dense.weight', 'dense.bias']
    """

    _params: OrderedDict[str, Parameter | None]
    _cells: OrderedDict[str, Cell | None]
    training: bool
    requires_grad: bool
    pynative: bool = False
    bprop: Callable[..., Any] | None = None
    _pipeline_stage: int | None = None
    _pipeline_segment: int | None = None

    def __init__(self, auto_prefix: bool = True, flags: dict[str, Any] | None = None) -> None:
        own = self.__dict__
        own["_params"] = OrderedDict()
        own["_cells"] = OrderedDict()
        own["_auto_prefix"] = auto_prefix
        own["_param_prefix"] = ""
        own["training"] = False
        own["requires_grad"] = False
        own["_special"] = None  # hooks, cast, recompute: None on the usual path
        own["_phase"] = "train"
        if flags:
            self.add_flags(**flags)

    # calling ---------------------------------------------------------------------------------------------

    def construct(self, *args: Any, **kwargs: Any) -> Any:
        """The computation; every subclass defines it."""
        raise StateError(
            type(self).__name__, message="the Cell defines no 'construct'",
            hint="rename 'forward' to 'construct'" if hasattr(type(self), "forward") else "def construct(self, x): ...",
        )  # fmt: skip

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            phase = state.phase
            if phase == PLAIN and (dispatch.should_compile() or self.__dict__.get("_jit_requested")):
                return dispatch.call_compiled(self, args, kwargs)
            special = self.__dict__.get("_special", _MISSING)
            if special is _MISSING:
                raise StateError(type(self).__name__, message="super().__init__() was not called in __init__")
            if phase == STAGE:
                guards = current_builder().notes.get("guards")
                if guards is not None:
                    guards.enter_cell(self)
            if special is None and self.bprop is None:
                return self._run(args, kwargs)
            return call_wrappers.call(self, special, args, kwargs)
        except Exception as error:
            if state.phase == STAGE:
                leave(error)
            else:
                error.__traceback__ = shown_traceback(error)
            raise

    def _run(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if state.phase == STAGE:
            trail = current_builder().notes.get("trail")
            if trail is not None:
                with trail.inside(self):
                    return convert(self.construct)(*args, **kwargs)
            return convert(self.construct)(*args, **kwargs)
        return self.construct(*args, **kwargs)

    def _run_with_bprop(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self.bprop is None:
            return self._run(args, kwargs)
        if kwargs:
            raise ArgumentValueError(
                type(self).__name__,
                "kwargs",
                got=", ".join(kwargs),
                takes="positional inputs only, as the Cell has a bprop",
            )
        return custom_vjp(self.construct, self.bprop, type(self).__name__, args)

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Compile for inputs like these without keeping the result."""
        dispatch.call_compiled(self, args, kwargs)

    # attributes ------------------------------------------------------------------------------------------

    def __setattr__(self, name: str, value: Any) -> None:
        own = self.__dict__
        cells, params = own.get("_cells"), own.get("_params")
        if cells is None or params is None:
            if isinstance(value, (Cell, Parameter)):
                raise AttributeMissingError(
                    type(self).__name__, message=f"'{name}' is assigned before super().__init__()",
                    hint="call super().__init__() first in __init__",
                )  # fmt: skip
            own[name] = value
            return
        if isinstance(value, Parameter):
            cells.pop(name, None)
            self.insert_param_to_cell(name, value)
        elif isinstance(value, Cell):
            params.pop(name, None)
            self._own_cell(name, value)
        elif isinstance(value, ParameterTuple):
            unnamed = 0
            for p in value:
                if not p.has_name:
                    unnamed += 1
                    p.name = f"Parameter${unnamed}"
                self.insert_param_to_cell(p.name, p, check_name_contain_dot=False)
            own[name] = value
        elif name in params and isinstance(value, Tensor) and params[name] is not None:
            params[name].set_data(value)
        elif name in params:
            if value is not None:
                raise ArgumentTypeError(
                    type(self).__name__, name, got=type(value).__name__, takes="a Parameter, a Tensor or None"
                )
            params[name] = None
            own[name] = None
        elif name in cells:
            if value is not None:
                raise ArgumentTypeError(type(self).__name__, name, got=type(value).__name__, takes="a Cell or None")
            cells[name] = None
            own[name] = None
        else:
            prop = getattr(type(self), name, None)
            if isinstance(prop, property) and prop.fset is not None:
                prop.fset(self, value)
                return
            own[name] = value
        bump_epoch()

    def __delattr__(self, name: str) -> None:
        own = self.__dict__
        if name not in own:
            raise AttributeMissingError(type(self).__name__, message=f"there is no attribute '{name}' to delete")
        self._params.pop(name, None)
        self._cells.pop(name, None)
        del own[name]
        bump_epoch()

    def __getattr__(self, name: str) -> Any:
        if "_cells" not in self.__dict__ and not name.startswith("__"):
            raise AttributeMissingError(
                type(self).__name__, message=f"'{name}' is used before super().__init__()",
                hint="call super().__init__() first in __init__",
            )  # fmt: skip
        import difflib

        close = difflib.get_close_matches(
            name, [k for k in self.__dict__ if not k.startswith("_")] + dir(type(self)), 1
        )
        raise AttributeMissingError(
            type(self).__name__, message=f"there is no attribute '{name}'",
            hint=f"did you mean '{close[0]}'?" if close else None,
        )  # fmt: skip

    def _own_cell(self, name: str, cell: Cell) -> None:
        if self._auto_prefix:
            cell.update_parameters_name(name + ".")
        self._cells[name] = cell
        self.__dict__[name] = cell

    def insert_child_to_cell(self, child_name: str, child_cell: Cell) -> None:
        """Add a Cell under a name.

        Raises:
            ArgumentTypeError: ``child_cell`` is not a Cell.
            MissingKeyError: the name is taken.
        """
        if not isinstance(child_name, str) or not child_name:
            raise ArgumentTypeError(
                "insert_child_to_cell", "child_name", got=repr(child_name), takes="a non-empty string"
            )
        if child_name in self._cells or (child_name in self.__dict__ and child_name not in self._cells):
            raise MissingKeyError(
                "insert_child_to_cell", "child_name", got=f"'{child_name}'", takes="a name not in use"
            )
        if not isinstance(child_cell, Cell):
            raise ArgumentTypeError("insert_child_to_cell", "child_cell", got=type(child_cell).__name__, takes="a Cell")
        self._cells[child_name] = child_cell
        self.__dict__[child_name] = child_cell
        bump_epoch()

    def insert_param_to_cell(
        self, param_name: str, param: Parameter | None, check_name_contain_dot: bool = True
    ) -> None:
        """Add a Parameter under a name; an unnamed one is named so.

        Raises:
            ArgumentTypeError: ``param`` is not a Parameter.
            MissingKeyError: the name is empty, contains a dot, or belongs to something else.
        """
        where = f"{type(self).__name__}.insert_param_to_cell"
        if not param_name:
            raise MissingKeyError(where, "param_name", got="an empty string", takes="a name")
        if check_name_contain_dot and "." in param_name:
            raise MissingKeyError(where, "param_name", got=f"'{param_name}'", takes="a name without dots")
        if param is not None and not isinstance(param, Parameter):
            raise ArgumentTypeError(where, "param", got=type(param).__name__, takes="a Parameter or None")
        if isinstance(param, Parameter) and not param.has_name:
            param.name = param_name
        self._params[param_name] = param
        self.__dict__[param_name] = param
        bump_epoch()

    # parameters ------------------------------------------------------------------------------------------

    def parameters_and_names(self, name_prefix: str = "", expand: bool = True) -> Iterator[tuple[str, Parameter]]:
        """Each parameter once with its path of attributes.

        Args:
            name_prefix: put before each path.
            expand: include the parameters of child Cells.
        """
        seen: set[int] = set()
        cells = self.cells_and_names(name_prefix) if expand else iter([(name_prefix, self)])
        for path, cell in cells:
            for name, param in cell._params.items():
                if param is not None and id(param) not in seen:
                    seen.add(id(param))
                    yield (f"{path}.{name}" if path else name), param

    def get_parameters(self, expand: bool = True) -> Iterator[Parameter]:
        """Each parameter once."""
        for _, param in self.parameters_and_names(expand=expand):
            yield param

    def trainable_params(self, recurse: bool = True) -> list[Parameter]:
        """The parameters whose ``requires_grad`` is True."""
        return [p for p in self.get_parameters(recurse) if p.requires_grad]

    def untrainable_params(self, recurse: bool = True) -> list[Parameter]:
        """The parameters whose ``requires_grad`` is False."""
        return [p for p in self.get_parameters(recurse) if not p.requires_grad]

    def parameters_dict(self, recurse: bool = True) -> OrderedDict[str, Parameter]:
        """The parameters by name."""
        return OrderedDict((p.name, p) for p in self.get_parameters(recurse))

    def update_parameters_name(self, prefix: str = "", recurse: bool = True) -> None:
        """Rename every parameter to ``prefix`` and its path."""
        if not isinstance(prefix, str):
            raise ArgumentTypeError("update_parameters_name", "prefix", got=type(prefix).__name__, takes="a string")
        if prefix:
            for path, param in self.parameters_and_names(expand=recurse):
                param.name = prefix + path

    def init_parameters_data(self, auto_parallel_mode: bool = False) -> dict[Parameter, Parameter]:
        """Parameters are filled when they are made; returns each with itself."""
        return {p: p for p in self.get_parameters()}

    def check_names(self) -> None:
        """Refuse parameters of one name.

        Raises:
            ArgumentValueError: two parameters share a name.
        """
        names: set[str] = set()
        for path, param in self.parameters_and_names():
            if param.name in names:
                raise ArgumentValueError(
                    "check_names", message=f"two parameters are named '{param.name}' (one is {path})"
                )
            names.add(param.name)

    @property
    def parameter_layout_dict(self) -> dict[str, Any]:
        """Layouts by parameter name; filled by the parallel layer."""
        return self.__dict__.setdefault("_parameter_layouts", {})

    @property
    def param_prefix(self) -> str:
        """The path that was put before this Cell's parameter names."""
        return self._param_prefix

    def update_cell_prefix(self) -> None:
        """Set every child's ``param_prefix`` to its path."""
        for path, cell in self.cells_and_names():
            cell.__dict__["_param_prefix"] = path

    # cells -----------------------------------------------------------------------------------------------

    def cells(self) -> Iterable[Cell]:
        """The direct children."""
        return [c for c in self._cells.values() if c is not None]

    def name_cells(self) -> OrderedDict[str, Cell]:
        """The direct children by name."""
        return OrderedDict((n, c) for n, c in self._cells.items() if c is not None)

    def cells_and_names(self, name_prefix: str = "", cells: set[int] | None = None) -> Iterator[tuple[str, Cell]]:
        """This Cell and all below it, each once, with their paths, parents first."""
        seen = cells if cells is not None else set()
        if id(self) in seen:
            return
        seen.add(id(self))
        yield name_prefix, self
        for name, cell in self._cells.items():
            if cell is not None:
                yield from cell.cells_and_names(f"{name_prefix}.{name}" if name_prefix else name, seen)

    def apply(self: C, fn: Callable[[Cell], Any]) -> C:
        """Call ``fn`` on every Cell, children first, and return this one."""
        for cell in self.cells():
            cell.apply(fn)
        fn(self)
        return self

    def get_sub_cell(self, target: str) -> Cell:
        """The Cell at a path such as ``"layers.0"``."""
        cell: Cell = self
        for name in target.split(".") if target else []:
            child = cell._cells.get(name)
            if child is None:
                raise AttributeMissingError(
                    type(self).__name__, message=f"there is no Cell at '{target}' (missing '{name}')"
                )
            cell = child
        return cell

    # modes and flags -------------------------------------------------------------------------------------

    def set_train(self: C, mode: bool = True) -> C:
        """Training mode (True) or inference mode for this Cell and all below it; returns the Cell."""
        check_bool(f"{type(self).__name__}.set_train", "mode", mode)
        changed = False
        for _, cell in self.cells_and_names():
            if cell.__dict__["training"] is not mode:
                cell.__dict__["training"] = mode
                changed = True
            cell.__dict__["_phase"] = "train" if mode else "predict"
        if changed:
            bump_epoch()
        return self

    def set_grad(self: C, requires_grad: bool = True) -> C:
        """Mark that gradients are taken of this Cell; returns the Cell."""
        check_bool("set_grad", "requires_grad", requires_grad)
        self.__dict__["requires_grad"] = requires_grad
        return self

    @property
    def pipeline_stage(self) -> int | None:
        """The stage of a pipeline that computes this Cell and what is below it; None: that of the Cell around it.

        Raises:
            ArgumentTypeError, ArgumentValueError: (when set) no int from 0 on.
        """
        return self._pipeline_stage

    @pipeline_stage.setter
    def pipeline_stage(self, value: int) -> None:
        self.__dict__["_pipeline_stage"] = _place(self, "pipeline_stage", value)
        bump_epoch()

    @property
    def pipeline_segment(self) -> int | None:
        """Which of the parts of a network that its stage holds, where a stage holds several; None: as around it.

        Raises:
            ArgumentTypeError, ArgumentValueError: (when set) no int from 0 on.
        """
        return self._pipeline_segment

    @pipeline_segment.setter
    def pipeline_segment(self, value: int) -> None:
        self.__dict__["_pipeline_segment"] = _place(self, "pipeline_segment", value)
        bump_epoch()

    @property
    def phase(self) -> str:
        """``"train"`` or ``"predict"``."""
        return self._phase

    @phase.setter
    def phase(self, value: str) -> None:
        self.__dict__["_phase"] = value

    def add_flags(self: C, **flags: Any) -> C:
        """Set attributes on this Cell; returns it."""
        for name, value in flags.items():
            setattr(self, name, value)
        return self

    def add_flags_recursive(self: C, **flags: Any) -> C:
        """Set attributes on this Cell and all below it; returns it."""
        for _, cell in self.cells_and_names():
            cell.add_flags(**flags)
        return self

    def get_flags(self) -> dict[str, Any]:
        """The attributes that are plain values."""
        return {
            k: v for k, v in self.__dict__.items() if not k.startswith("_") and isinstance(v, (bool, int, float, str))
        }

    def to_float(self: C, dst_type: Any) -> C:
        """Compute in another floating dtype: inputs and parameters are converted as they enter ``construct``.

        Args:
            dst_type: float16, bfloat16 or float32.
        """
        dtype = as_dtype(dst_type, "to_float", "dst_type")
        if not dtype.is_floating:
            raise ArgumentValueError("to_float", "dst_type", got=str(dtype), takes="a floating dtype")
        for _, cell in self.cells_and_names():
            cell._specialize().dtype = dtype
        return self

    def shard(self, in_strategy: Any, out_strategy: Any = None, parameter_plan: Any = None) -> Callable[..., Any]:
        """The Cell as a function whose tensors lie on devices as strategies say: :func:`mycelia.parallel.shard`."""
        return shard(self, in_strategy, out_strategy, parameter_plan)

    def recompute(self, **kwargs: Any) -> None:
        """Keep only the inputs of this Cell for the backward pass, and compute it again there."""
        self._specialize().recompute = True
        bump_epoch()

    def set_jit_config(self, jit_config: Any) -> None:
        """Kept for compatibility: compilation has no options to set."""
        self.__dict__["_jit_config"] = jit_config

    def set_inputs(self, *inputs: Any, **kwargs: Any) -> None:
        """Say which inputs a compiled call will have, and which lengths vary.

        Args:
            inputs: all inputs, Tensors without data for tensors: ``Tensor(shape=[None, 3], dtype=ms.float32)``, a
                length that varies as None or a ``Symbol``. Varying axes are padded, to powers of two or what the
                Symbol allows, where that cannot change the result, so that few graphs serve all lengths.
            kwargs: or some inputs by the names of ``construct``'s parameters.

        Raises:
            ArgumentValueError: both are given, or an input that ``construct`` does not have.
        """
        check_inputs(type(self).__name__, self.construct, inputs, kwargs)
        self.__dict__["_input_spec"] = (inputs, kwargs)
        bump_epoch()

    def set_comm_fusion(self: C, fusion_type: int, recurse: bool = True) -> C:
        """Kept for the parallel layer; returns the Cell."""
        return self

    @property
    def compute_dtype(self) -> DType | None:
        """What ``to_float`` set, or None."""
        return None if self._special is None else self._special.dtype

    def _specialize(self) -> call_wrappers.Special:
        special = self.__dict__["_special"]
        if special is None:
            special = self.__dict__["_special"] = call_wrappers.Special()
        bump_epoch()
        return special

    # hooks -----------------------------------------------------------------------------------------------

    def register_forward_pre_hook(self, hook_fn: Callable[..., Any], with_kwargs: bool = False) -> HookHandle:
        """Call ``hook_fn(cell, inputs)`` before ``construct``; what it returns replaces the inputs."""
        return self._hook("forward_pre", hook_fn, with_kwargs)

    def register_forward_hook(self, hook_fn: Callable[..., Any], with_kwargs: bool = False) -> HookHandle:
        """Call ``hook_fn(cell, inputs, output)`` after ``construct``; what it returns replaces the output."""
        return self._hook("forward", hook_fn, with_kwargs)

    def register_backward_pre_hook(self, hook_fn: Callable[..., Any]) -> HookHandle:
        """Call ``hook_fn(cell, grad_output)`` with the gradients of the outputs; its result replaces them."""
        return self._hook("backward_pre", hook_fn, False)

    def register_backward_hook(self, hook_fn: Callable[..., Any]) -> HookHandle:
        """Call ``hook_fn(cell, grad_input, grad_output)``; its result replaces the gradients of the inputs."""
        return self._hook("backward", hook_fn, False)

    def _hook(self, kind: str, hook_fn: Callable[..., Any], with_kwargs: bool) -> HookHandle:
        if not callable(hook_fn):
            raise ArgumentTypeError(f"register_{kind}_hook", "hook_fn", got=type(hook_fn).__name__, takes="a function")
        hooks = self._specialize().hooks[kind]
        entry = (hook_fn, with_kwargs)
        hooks.append(entry)
        return HookHandle(hooks, entry)

    # state -----------------------------------------------------------------------------------------------

    def state_dict(self) -> OrderedDict[str, Parameter]:
        """The parameters by path."""
        return OrderedDict(self.parameters_and_names())

    def load_state_dict(self, state_dict: dict[str, Any], strict: bool = True) -> tuple[list[str], list[str]]:
        """Copy values by path; all are checked before any is changed.

        Returns:
            The missing and the unexpected names.

        Raises:
            ArgumentValueError: with ``strict``, names are missing or unexpected; or a shape differs.
        """
        own = self.state_dict()
        missing = [n for n in own if n not in state_dict]
        unexpected = [n for n in state_dict if n not in own]
        wrong = [
            f"{n}: shape {tuple(v.shape)} for {own[n].shape}" for n, v in state_dict.items()
            if n in own and tuple(v.shape) != own[n].shape
        ]  # fmt: skip
        if wrong or (strict and (missing or unexpected)):
            lines = [f"missing: {', '.join(missing)}"] if strict and missing else []
            lines += [f"unexpected: {', '.join(unexpected)}"] if strict and unexpected else []
            raise ArgumentValueError("load_state_dict", message="; ".join(lines + wrong))
        for n, v in state_dict.items():
            if n in own:
                own[n].set_data(v if isinstance(v, Tensor) else Tensor(v))
        return missing, unexpected

    def __deepcopy__(self: C, memo: dict[int, Any]) -> C:
        import copy

        made = object.__new__(type(self))
        memo[id(self)] = made
        for name, value in self.__dict__.items():
            if name != "_compiled_calls" and not name.startswith("_jit_"):
                made.__dict__[name] = copy.deepcopy(value, memo)
        return made

    # text ------------------------------------------------------------------------------------------------

    def extend_repr(self) -> str:
        """What stands between the parentheses of this Cell's line."""
        return ""

    def __repr__(self) -> str:
        extra = self.extend_repr()
        children = self.name_cells()
        if not children:
            return f"{type(self).__name__}({extra})"
        lines = [f"({name}): {repr(cell).replace(chr(10), chr(10) + '  ')}" for name, cell in children.items()]
        body = "\n  ".join(([extra] if extra else []) + lines)
        return f"{type(self).__name__}(\n  {body}\n)"


_MISSING = object()


def _place(cell: Cell, argument: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ArgumentTypeError(type(cell).__name__, argument, got=repr(value), takes="an int")
    if value < 0:
        raise ArgumentValueError(type(cell).__name__, argument, got=str(value), takes="0 or more")
    return value
