"""load_param_into_net against the rules recorded from MindSpore 2.10 (tests/oracles/checkpoint_mindspore.py)."""

from __future__ import annotations

import numpy as np
import pytest

from mycelia.core.errors import ArgumentTypeError
from mycelia.tensor import Parameter, Tensor
from mycelia.train.checkpoint import ParameterMismatchError, load_param_into_net
from mycelia.train.checkpoint.ckpt_format import ELEMENT_TYPES


def outcome(net, loaded, strict):
    try:
        result = load_param_into_net(net, loaded, strict_load=strict)
    except ParameterMismatchError:
        return "RuntimeError"
    return [*result, [[str(p.dtype), list(p.shape), p.asnumpy().tobytes().hex()] for p in net.parameters]]


def test_dtypes_are_converted_as_mindspore_does(recorded, make_net):
    cases = recorded("rules.json")["dtypes"]
    assert len(cases) > 20
    for ours, given, strict, expected in cases:
        net = make_net(w=np.zeros(2, ELEMENT_TYPES[ours]))
        loaded = {"w": Parameter(np.array([1, 100]).astype(ELEMENT_TYPES[given]), name="w")}
        assert outcome(net, loaded, strict) == expected, (ours, given, strict)


def test_shapes_must_be_equal_as_in_mindspore(recorded, make_net):
    for ours, given, strict, expected in recorded("rules.json")["shapes"]:
        net = make_net(w=np.zeros(ours, np.float32))
        assert outcome(net, {"w": Parameter(np.ones(given, np.float32))}, strict) == expected, (ours, given, strict)


def test_names_are_found_as_in_mindspore(recorded, make_net):
    for ours, given, strict, expected in recorded("rules.json")["names"]:
        net = make_net(**{name: np.zeros(1, np.float32) for name in ours})
        loaded = {name: Parameter(np.float32([i + 1])) for i, name in enumerate(given)}
        missing, unused, values = outcome(net, loaded, strict)
        assert (missing, values) == (expected[0], expected[2]), (ours, given, strict)
        # MindSpore lists entries that it loaded behind a prefix as not loaded; ours does not.
        loaded_values = {p.asnumpy().item() for p in net.parameters}
        assert unused == [n for n in expected[1] if loaded[n].asnumpy().item() not in loaded_values]


def test_values_arrive_and_belong_to_nobody_else(make_net):
    loaded = {"w": Parameter(np.array([1.0, 2.0], np.float32)), "note": "a string"}
    first, second = make_net(w=np.zeros(2, np.float32)), make_net(w=np.zeros(2, np.float32))
    assert load_param_into_net(first, loaded) == ([], ["note"])
    assert load_param_into_net(second, loaded) == ([], ["note"])
    first.parameters[0].set_data(Tensor(np.array([9.0, 9.0], np.float32)))
    assert second.values() == [[1, 2]]
    assert loaded["w"].asnumpy().tolist() == [1, 2]


def test_trailing_ones_of_a_loaded_shape_are_dropped(make_net):
    net = make_net(w=np.zeros((2, 3), np.float32), s=np.zeros((), np.float32))
    loaded = {"w": Parameter(np.ones((2, 3, 1, 1), np.float16)), "s": Parameter(np.ones(1, np.float32))}
    assert load_param_into_net(net, loaded) == ([], [])
    assert [p.shape for p in net.parameters] == [(2, 3), ()]
    assert net.values() == [[[1, 1, 1], [1, 1, 1]], 1]
    with pytest.raises(ParameterMismatchError, match=r"'w': shape \(2, 3\) in the net, \(2, 3, 1, 2\)"):
        load_param_into_net(net, {"w": Parameter(np.ones((2, 3, 1, 2), np.float32))})


def test_all_problems_come_in_one_error_and_nothing_is_changed(make_net):
    net = make_net(
        fine=np.zeros(2, np.float32), shape=np.zeros((3, 4), np.float32), kind=np.zeros(2, np.float32),
        both=np.zeros(2, np.uint8), small=np.zeros(1, np.int8), lost=np.zeros(1, np.float32),
    )  # fmt: skip
    loaded = {
        "fine": Parameter(np.ones(2, np.float32)), "shape": Parameter(np.ones((3, 5), np.float32)),
        "kind": Parameter(np.ones(2, np.int32)), "both": Parameter(np.ones(3, np.int64)),
        "small": Parameter(np.array([300], np.int32)),
    }  # fmt: skip
    before = net.values()
    with pytest.raises(ParameterMismatchError) as caught:
        load_param_into_net(net, loaded)
    text = str(caught.value)
    for part in [
        "5 values do not fit the net, and nothing was loaded",
        "'shape': shape (3, 4) in the net, (3, 5) in parameter_dict",
        "'kind': dtype Float32 in the net, Int32 in parameter_dict",
        "'both': shape (2,) in the net, (3,) in parameter_dict",
        "'both': dtype UInt8 in the net, Int64 in parameter_dict",
        "'small': values of dtype Int32 that do not fit Int8",
        "not in parameter_dict: 'lost'",
        "test_net_loading.py",
    ]:
        assert part in text, text
    assert net.values() == before
    assert isinstance(caught.value, RuntimeError)


def test_a_mismatch_behind_a_prefix_names_both(make_net):
    net = make_net(w=np.zeros(2, np.float32))
    with pytest.raises(ParameterMismatchError, match=r"'w' \(from 'net.w'\): shape \(2,\) in the net, \(5,\)"):
        load_param_into_net(net, {"net.w": Parameter(np.zeros(5, np.float32))})


def test_conversion_and_missing_names_are_logged(make_net, caplog):
    net = make_net(w=np.zeros(1, np.float16), v=np.zeros(1, np.float32))
    with np.errstate(all="raise"):
        assert load_param_into_net(net, {"w": Parameter(np.float32([1e9]))}) == (["v"], [])
    assert net.values()[0] == [float("inf")]
    assert "'w' is converted from Float32 to Float16" in caplog.text
    assert "1 parameters of the net are not in parameter_dict and keep their values: v" in caplog.text


def test_strings_are_never_loaded(make_net):
    net = make_net(w=np.zeros(1, np.float32), v=np.zeros(1, np.float32))
    assert load_param_into_net(net, {"w": "text", "net.v": "text"}) == (["v"], ["w", "net.v"])


def test_a_map_parameter_does_not_fit_a_tensor(make_net):
    net = make_net(w=np.zeros(1, np.float32))
    with pytest.raises(ParameterMismatchError, match="'w': a map parameter in parameter_dict, a tensor in the net"):
        load_param_into_net(net, {"w": [np.zeros(1), np.zeros(1), np.zeros(1)]})


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"net": 3}, "argument 'net' got a value of type int; it takes a Cell"),
        ({"parameter_dict": [1]}, "argument 'parameter_dict' got a value of type list; it takes a dict"),
        ({"parameter_dict": {3: "x"}}, "under the key 3"),
        (
            {"parameter_dict": {"w": Tensor([1.0])}},
            "got a value of type Tensor under the key 'w'; it takes a Parameter",
        ),
        ({"strict_load": 1}, r"argument 'strict_load' got 1 \(int\); it takes True or False"),
        ({"remove_redundancy": "no"}, "argument 'remove_redundancy' got 'no'"),
        ({"remove_redundancy": True}, "argument 'remove_redundancy' got True in a single process"),
    ],
)
def test_wrong_arguments(arguments, words, make_net):
    good = {"net": make_net(w=np.zeros(1, np.float32)), "parameter_dict": {}}
    with pytest.raises(ArgumentTypeError, match=words):
        load_param_into_net(**{**good, **arguments})
