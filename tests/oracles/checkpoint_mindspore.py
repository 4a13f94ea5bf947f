"""Checkpoint files and loading rules of the real MindSpore, recorded for the tests.

Three steps, the first and the last with MindSpore 2.10 (an environment of its own), the second with this
project's Python:

    python checkpoint_mindspore.py theirs    # MindSpore writes theirs_*, and theirs.json says what is in them;
                                             # rules.json says what load_param_into_net does
    python checkpoint_mindspore.py ours      # our writer writes ours_*
    python checkpoint_mindspore.py seen      # MindSpore loads ours_*, and seen.json says what it saw

All files go to ``checkpoint_files`` beside this script. In the JSON files a tensor is its MindSpore dtype,
its shape and its bytes in hexadecimal.
"""

from __future__ import annotations

import json
import os
import sys

import numpy as np

FILES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "checkpoint_files")
KEYS = {"AES-GCM": bytes(range(32)), "AES-CBC": bytes(range(16)), "SM4-CBC": bytes(range(1, 17))}
TYPES = ("Bool", "Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64", "Float16", "Float32",
         "Float64", "BFloat16")  # fmt: skip
THEIRS_ALONE = ("Complex64", "Complex128", "Float8E4M3FN", "Float8E5M2")
CONVERSIONS = (
    ("Float32", "Float16"), ("Float16", "Float32"), ("BFloat16", "Float64"), ("Float32", "Int32"), ("Int32", "Float32"),
    ("Int32", "Int64"), ("Int8", "Int32"), ("UInt8", "Int32"), ("UInt8", "UInt16"), ("Bool", "Int8"),
    ("Complex64", "Float32"), ("Complex64", "Complex128"), ("Int64", "Int64"),
)  # fmt: skip
SHAPES = (
    ((2, 3), (2, 3)), ((2, 3), (3, 2)), ((2, 3), (6,)), ((2, 3), (1, 2, 3)), ((1,), ()), ((2,), (3,)), ((0,), (0,)),
)  # fmt: skip
NAMES = (
    (["a", "b"], ["a", "c"]), (["a", "x.b"], ["net.a", "net.x.b", "q"]), (["weight", "bias"], ["p1weight", "p2bias"]),
    (["weight", "bias"], ["weight", "fc.bias", "fc.weight"]), (["accu_grads.w", "v"], ["v"]), (["a"], ["b"]),
    (["a.w", "b.w"], ["z.a.w"]), (["w"], ["moments.w", "w"]),
)  # fmt: skip


def path(name):
    return os.path.join(FILES, name)


def remove(name):
    if os.path.exists(path(name)):
        os.chmod(path(name), 0o600)
        os.remove(path(name))


def dump(name, content):
    with open(path(name), "w", encoding="utf-8") as file:
        json.dump(content, file, indent=1, sort_keys=True)
        file.write("\n")


def values(count=6):
    return np.linspace(0, 5, count).round().reshape(2, count // 2)


# ---- MindSpore's side


def tensor_of(title, data):
    import mindspore as ms

    names = {"Bool": "bool_", "BFloat16": "bfloat16", "Float8E4M3FN": "float8_e4m3fn", "Float8E5M2": "float8_e5m2"}
    return ms.Tensor(data, dtype=getattr(ms, names.get(title, title.lower())))


def described(value):
    import mindspore as ms

    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return [[str(part.dtype), list(part.shape), part.tobytes().hex()] for part in value]
    data = bytes(value.get_bytes()) if isinstance(value, ms.Tensor) else value.tobytes()
    return [str(value.dtype), list(value.shape), data.hex()]


class MapTable:
    """Stands for a map parameter, which the CPU has no kernels for: two slices of a table."""

    def __init__(self):
        self.slices = [
            (np.array([1, 5], np.int32), np.array([[1, 2], [3, 4]], np.float32), np.array([0, 1], np.int32), False),
            (np.array([9], np.int32), np.array([[5, 6]], np.float32), np.array([1], np.int32), True),
        ]

    def export_slice_data(self, incremental):
        return self.slices.pop(0)


def theirs():
    import mindspore as ms
    import mindspore.train.serialization as serialization
    from mindspore import Parameter, nn

    found = {}

    def save(name, tensors, **options):
        remove(name)
        ms.save_checkpoint([{"name": k, "data": v} for k, v in tensors.items()], path(name), **options)
        if options.get("async_save"):
            serialization._wait_async_thread_save_ckpt()
        found[name] = {k: described(v) for k, v in tensors.items()}

    every = {title: tensor_of(title, values()) for title in TYPES + THEIRS_ALONE}
    save("theirs_types.ckpt", {**every, "scalar": tensor_of("Float32", 3.5), "名.β": tensor_of("Int32", [7])})
    extra = {
        "int": 3, "float": 2.5, "bool": True, "str": "hello", "unicode": "héλ😀", "empty": "",
        "tensor": tensor_of("Int64", [1, 2]), "parameter": Parameter(tensor_of("Float32", [1.0]), name="other"),
        "w": 5,
    }  # fmt: skip
    save("theirs_appended.ckpt", {"w": every["Float32"], "v": every["Int8"]}, append_dict=extra)
    found["theirs_appended.ckpt"].update(
        {k: described(v if isinstance(v, (str, ms.Tensor)) else ms.Tensor(v)) for k, v in extra.items()}
    )
    save("theirs_crc.ckpt", {"a": every["Float32"], "b": every["BFloat16"]}, crc_check=True)
    whole = tensor_of("Float32", np.arange(700, dtype=np.float32).reshape(100, 7))
    limit, serialization.SLICE_SIZE = serialization.SLICE_SIZE, 1
    save("theirs_sliced.ckpt", {"first": every["Int8"], "whole": whole, "last": every["Int16"]}, crc_check=True)
    save("theirs_split_rows.ckpt", {"whole": whole, "last": every["Int16"]}, async_save=True)
    serialization.SLICE_SIZE = limit
    save("theirs_empty.ckpt", {"e": tensor_of("Float32", np.zeros((0, 3))), "e1": tensor_of("Int32", np.zeros(0)),
                               "f": every["Float32"]}, async_save=True)  # fmt: skip
    limit, serialization.ENCRYPT_BLOCK_SIZE = serialization.ENCRYPT_BLOCK_SIZE, 1
    for mode, key in KEYS.items():
        save(f"theirs_{mode}.ckpt", {"whole": whole, "a": every["Int8"]}, enc_key=key, enc_mode=mode)
    serialization.ENCRYPT_BLOCK_SIZE = limit
    simple = {title: every[title] for title in TYPES}
    scalars = {"scalar": tensor_of("Float16", 1.5), "epoch": tensor_of("Int64", 5)}
    simple.update(scalars, e=tensor_of("Int32", np.zeros((0, 2))))
    save("theirs.safetensors", simple, format="safetensors")
    simple.pop("BFloat16")  # MindSpore fails to take the checksum of one
    save("theirs_crc.safetensors", simple, format="safetensors", crc_check=True)

    ms.set_seed(1)
    net = nn.SequentialCell(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Flatten(), nn.Dense(8, 3))
    remove("theirs_net.ckpt")
    ms.save_checkpoint(net, path("theirs_net.ckpt"))
    found["theirs_net.ckpt"] = {p.name: described(p) for p in net.get_parameters()}

    remove("theirs_map.ckpt")
    with open(path("theirs_map.ckpt"), "wb") as file:
        serialization._write_mapparameter("table", ["mapparameter", MapTable()], file)
    found["theirs_map.ckpt"] = {k: described(v) for k, v in ms.load_checkpoint(path("theirs_map.ckpt")).items()}
    dump("theirs.json", found)
    dump("rules.json", rules())


def rules():
    """What load_param_into_net does, case by case: what it gives, or the kind of its error."""
    import mindspore as ms
    from mindspore import Parameter, nn

    def net_of(**tensors):
        net = nn.Cell()
        for number, (name, tensor) in enumerate(tensors.items()):
            net.insert_param_to_cell(f"p{number}", Parameter(tensor, name=name), check_name_contain_dot=False)
        return net

    def outcome(net, loaded, strict):
        try:
            not_loaded, unused = ms.load_param_into_net(net, loaded, strict_load=strict)
        except (RuntimeError, TypeError, ValueError) as error:
            return type(error).__name__
        return [not_loaded, unused, [described(p) for p in net.get_parameters()]]

    found = {"dtypes": [], "shapes": [], "names": []}
    for strict in (False, True):
        for ours, loaded in CONVERSIONS:
            net = net_of(w=tensor_of(ours, [0, 0]))
            got = outcome(net, {"w": Parameter(tensor_of(loaded, [1, 100]), name="w")}, strict)
            found["dtypes"].append([ours, loaded, strict, got])
        for ours, loaded in SHAPES:
            net = net_of(w=tensor_of("Float32", np.zeros(ours)))
            got = outcome(net, {"w": Parameter(tensor_of("Float32", np.ones(loaded)), name="w")}, strict)
            found["shapes"].append([list(ours), list(loaded), strict, got])
        for ours, loaded in NAMES:
            net = net_of(**{name: tensor_of("Float32", [0.0]) for name in ours})
            given = {n: Parameter(tensor_of("Float32", [i + 1.0]), name=n) for i, n in enumerate(loaded)}
            found["names"].append([ours, loaded, strict, outcome(net, given, strict)])
    return found


def seen():
    import mindspore as ms

    found = {}
    for name in sorted(os.listdir(FILES)):
        if not name.startswith("ours"):
            continue
        options = {"format": "safetensors" if name.endswith(".safetensors") else "ckpt", "crc_check": "crc" in name}
        for mode, key in KEYS.items():
            if mode in name:
                options.update(dec_key=key, dec_mode=mode)
        loaded = ms.load_checkpoint(path(name), **options)
        found[name] = {k: described(v) for k, v in loaded.items()}
    dump("seen.json", found)
    for name, content in found.items():
        print(f"MindSpore {ms.__version__} loaded {name}: {len(content)} entries")


# ---- our side


def ours_content():
    """What each of our files holds, by file; the tests write it again."""
    import ml_dtypes

    names = {"BFloat16": ml_dtypes.bfloat16, "Bool": np.bool_}
    every = {title: values().astype(names.get(title, title.lower())) for title in TYPES}
    whole = np.arange(700, dtype=np.float32).reshape(100, 7)
    plain = {
        **every, "scalar": np.array(3.5, np.float32), "columns": whole[:4, ::3].T, "whole": whole, "text": "héλ😀",
        "none": "", "名.β": np.array([7], np.int32), "e": np.zeros((0, 3), np.float32),
    }  # fmt: skip
    table = [np.array([1, 5, 9], np.int32), np.arange(6, dtype=np.float32).reshape(3, 2), np.array([0, 1, 1], np.int32)]
    checkable = {name: v for name, v in plain.items() if not isinstance(v, str) and name != "BFloat16"}
    return {
        "ours.ckpt": plain, "ours_crc.ckpt": plain, "ours_map.ckpt": {"a": every["Int8"], "table": table},
        "ours_crc.safetensors": checkable, "ours.safetensors": {**every, "w": whole, "text": "héλ😀"},
        **{f"ours_{mode}.ckpt": plain for mode in KEYS},
    }  # fmt: skip


def write_ours(directory, names=None):
    """Write our files; the long array is in slices of 1,000 bytes, the encrypted files in blocks of 1,000."""
    from functools import partial

    from mycelia.train.checkpoint.ckpt_format import write_ckpt
    from mycelia.train.checkpoint.encryption import BlockCipher
    from mycelia.train.checkpoint.safetensors_format import write_safetensors

    for name, content in ours_content().items():
        if names is not None and name not in names:
            continue
        target = os.path.join(directory, name)
        if name.endswith(".safetensors"):
            write_safetensors(target, content, crc_check="crc" in name)
            continue
        mode = next((mode for mode in KEYS if mode in name), None)
        cipher = BlockCipher(KEYS[mode], mode, "ours", "enc_key") if mode else None
        wrap = partial(cipher.sink, block_bytes=1000) if cipher else None
        write_ckpt(target, content, crc_check="crc" in name, slice_bytes=1000, wrap=wrap)


def ours():
    for name in ours_content():
        remove(name)
    write_ours(FILES)


if __name__ == "__main__":
    os.makedirs(FILES, exist_ok=True)
    {"theirs": theirs, "ours": ours, "seen": seen}[sys.argv[1]]()
    for file_name in os.listdir(FILES):
        os.chmod(path(file_name), 0o644)
