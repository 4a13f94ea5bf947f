"""Damaged, foreign and hostile files: a clear error each, never a crash or another model."""

from __future__ import annotations

import hashlib
import io
import json
import random
import struct
import subprocess
import sys

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, nn, ops
from mycelia.core.errors import FileFormatError
from mycelia.export import mindir
from mycelia.export.mindir import MAGIC, VERSION, read_program, write_program
from mycelia.frontend.program import stage_program

X = Tensor(np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3))


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.dense = nn.Dense(3, 2)
        self.mask = Tensor([True, False])

    def construct(self, x):
        y = self.dense(x) * self.mask
        i = 0
        while y.sum() < 3 and i < 4:
            y = y + Tensor(np.array([1, 2], np.float32))
            i += 1
        if y.sum() < -100:
            raise ValueError("low")
        return {"y": ops.clamp(y, -9.5, float("inf")), "i": i, "k": (1, None)}


def content(program):
    sink = io.BytesIO()
    write_program(program, sink)
    return sink.getvalue()


@pytest.fixture(scope="module")
def whole():
    ms.set_seed(1)
    return content(stage_program(Net(), (X,), "export"))


def read(data):
    return read_program(io.BytesIO(data), "net.mindir")


def parts(data):
    """The description, and what follows it."""
    text_length, rest_length = struct.unpack_from("<QQ", data, 16)
    assert len(data) == 128 + text_length + rest_length
    return json.loads(data[128 : 128 + text_length]), data[128 + text_length :]


def joined(description, rest, version=VERSION):
    """A file with right hashes."""
    text = description if isinstance(description, bytes) else json.dumps(description).encode()
    gap = bytes(-(128 + len(text)) % 64)
    rest = gap + rest
    head = struct.pack(
        "<8sIIQQ32s32s", MAGIC, version, 0, len(text), len(rest), hashlib.sha256(text).digest(),
        hashlib.sha256(rest).digest(),
    )  # fmt: skip
    return head + hashlib.sha256(head).digest() + text + rest


def arrays_of(data):
    text_length, _ = struct.unpack_from("<QQ", data, 16)
    return data[128 + text_length + -(128 + text_length) % 64 :]


def test_layout(whole):
    """As the module says, read with nothing but the standard library."""
    assert whole[:8] == b"\x89MYCIR\r\n"
    assert struct.unpack_from("<II", whole, 8) == (1, 0)
    assert hashlib.sha256(whole[:96]).digest() == whole[96:128]
    description, rest = parts(whole)
    assert hashlib.sha256(rest).digest() == whole[64:96]
    assert description["output_names"] == ["output['y']", "output['i']", "output['k'][0]", "output['k'][1]"]
    assert description["input_names"] == ["x"]
    by_name = {row.get("name"): row for row in description["state"]}
    assert by_name["mask"]["kind"] == "buffer"
    dtype, shape, offset = description["arrays"][by_name["dense.weight"]["array"]]
    assert (dtype, shape, offset % 64) == ("float32", [2, 3], 0)
    weight = np.frombuffer(arrays_of(whole), "<f4", 6, offset).reshape(2, 3)
    assert np.array_equal(weight, read(whole).state[0].value.asnumpy())


def test_writing_what_was_read_gives_the_same_bytes(whole):
    assert content(read(whole)) == whole
    assert joined(json.dumps(parts(whole)[0], separators=(",", ":")).encode(), arrays_of(whole)) == whole


FOREIGN = {
    "empty": (b"", "the file is empty"),
    "protobuf": (b"\n\x050.1.0\x12\tMindSpore", "no file that mycelia.export wrote"),
    "text": (b"graph main() {}" * 99, "no file that mycelia.export wrote"),
    "newlines converted": (MAGIC.replace(b"\r\n", b"\n") + bytes(200), "no file that mycelia.export wrote"),
    "cut in the magic": (MAGIC[:5], "the file was cut"),
    "cut in the head": (MAGIC + bytes(50), "the file was cut"),
    "zeros": (bytes(500), "no file that mycelia.export wrote"),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_other_files(tmp_path, name):
    data, words = FOREIGN[name]
    file = tmp_path / "other.mindir"
    file.write_bytes(data)
    with pytest.raises(FileFormatError, match=words) as caught:
        ms.load(str(file))
    assert "other.mindir" in str(caught.value)
    assert "test_mindir_file.py" in str(caught.value)


def test_a_later_version_says_so(whole):
    description, _ = parts(whole)
    with pytest.raises(FileFormatError, match="version 2 of the format, and this package reads up to 1"):
        read(joined(description, arrays_of(whole), version=2))


def test_an_unknown_operator_names_the_producer(whole):
    description, _ = parts(whole)
    description["graphs"][-1]["nodes"][0][0] = "quantum_entangle"
    description["producer_version"] = "9.9"
    with pytest.raises(FileFormatError, match=r"'quantum_entangle' is not known(.|\n)*mycelia 9.9"):
        read(joined(description, arrays_of(whole)))


def test_random_damage(whole):
    """Bits flipped, bytes cut out, put in, cut off and put on, at random places."""
    random.seed(0)
    for case in range(300):
        data = bytearray(whole)
        at = random.randrange(len(data))
        match case % 6:
            case 0:
                data[at] ^= 1 << random.randrange(8)
            case 1:
                for _ in range(9):
                    data[random.randrange(len(data))] ^= random.randrange(1, 256)
            case 2:
                del data[at:]
            case 3:
                del data[at : at + random.randrange(1, 99)]
            case 4:
                data[at:at] = random.randbytes(random.randrange(1, 99))
            case 5:
                data += random.randbytes(random.randrange(1, 99))
        if bytes(data) == whole:
            continue
        with pytest.raises(FileFormatError):
            read(bytes(data))


def test_every_byte_of_the_head(whole):
    for at in range(128):
        data = bytearray(whole)
        data[at] ^= 0x10
        with pytest.raises(FileFormatError):
            read(bytes(data))


def places(value, found, path=()):
    """Every place in a tree of JSON values."""
    found.append(path)
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in items:
        places(child, found, (*path, key))
    return found


REPLACEMENTS = [None, True, -1, 0, 1, 10**30, 2.5, "", "float32", "x", [], [0], {}, {"tuple": [1]}, {"graph": 0},
                {"array": 0}, {"dtype": "string"}, {"float": "nan"}, {"failure": {"error": "SystemExit"}}]  # fmt: skip


def test_wrong_descriptions_with_right_hashes(whole):
    """One place after the other says something else: an error of ours, or a program that can be written."""
    random.seed(0)
    accepted = 0
    rest = arrays_of(whole)
    for path in places(parts(whole)[0], []):
        description, _ = parts(whole)
        new = random.choice(REPLACEMENTS)
        if not path:
            description = new
        else:
            holder = description
            for key in path[:-1]:
                holder = holder[key]
            if random.random() < 0.2:
                del holder[path[-1]]
            else:
                holder[path[-1]] = new
        try:
            program = read(joined(description, rest))
        except FileFormatError:
            continue
        accepted += 1
        assert repr(program)
        content(program)
    assert accepted > 20  # names, notes, flags, attributes that make sense


@pytest.mark.parametrize(
    ("text", "words"),
    [(b"{", "no JSON"), (b"[]", "not an object"), (b"\xff\xfe", "no JSON"), (b"[" * 100_000, "no JSON"),
     (b"9" * 5000, "no JSON"), (b"{}", "table of arrays is missing"), (b'{"arrays": []}', "not a list")],
)  # fmt: skip
def test_descriptions_that_are_none(text, words):
    with pytest.raises(FileFormatError, match=words):
        read(joined(text, b""))


def test_arrays_outside_the_file(whole):
    for row in (["float32", [10**9, 10**9], 0], ["float32", [2, 3], 10**9], ["float32", [2, 3], 3], ["string", [1], 0]):
        description, _ = parts(whole)
        description["arrays"][0] = row
        with pytest.raises(FileFormatError, match="an array does not lie within the file"):
            read(joined(description, arrays_of(whole)))


def test_a_bool_that_is_none(whole):
    description, _ = parts(whole)
    (mask,) = [row for row in description["state"] if row.get("name") == "mask"]
    rest = bytearray(arrays_of(whole))
    rest[description["arrays"][mask["array"]][2]] = 7
    with pytest.raises(FileFormatError, match="neither 0 nor 1"):
        read(joined(description, bytes(rest)))


def test_loaded_arrays_are_not_copied(monkeypatch):
    """The engine uses the memory that the file was read into."""
    places = []

    def noted(type_, make=mindir._aligned):
        places.append(make(type_))
        return places[-1]

    monkeypatch.setattr(mindir, "_aligned", noted)
    data = np.arange(1 << 18, dtype=np.float32)
    p = ms.Parameter(Tensor(data), name="p")
    program = read(content(stage_program(lambda x: x + p, (Tensor(1.0),), "export")))
    loaded = np.asarray(program.state[0].value._value)
    assert loaded.ctypes.data in [array.ctypes.data for array in places]
    assert np.array_equal(loaded, data)


LARGE = """
import sys
import numpy as np
import mycelia as ms
from mycelia import nn, ops
MB = 256
def peak():
    return int(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1]) // 1024
def reset():
    open("/proc/self/clear_refs", "w").write("5")
def now():
    return int(next(line for line in open("/proc/self/status") if line.startswith("VmRSS")).split()[1]) // 1024
class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.w = ms.Parameter(ms.Tensor(np.ones(MB << 18, np.float32)), name="w")
    def construct(self, x):
        return self.w[:2] * x
x = ms.Tensor([1.0, 2.0])
if sys.argv[1] == "export":
    net = Net()
    net.w._value.block_until_ready()
before = now()
reset()
if sys.argv[1] == "load":
    cell = nn.GraphCell(ms.load(sys.argv[2]))
    made = peak() - before
    assert cell(x).asnumpy().tolist() == [1, 2]
    assert made < 1.2 * MB + 40, made
else:
    ms.export(net, x, file_name=sys.argv[2], file_format="MINDIR")
    made = peak() - before
    assert made < 0.2 * MB + 40, made
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak of memory from /proc")
def test_memory_of_large_files(tmp_path):
    for what in ("export", "load"):
        done = subprocess.run(
            [sys.executable, "-c", LARGE, what, str(tmp_path / "large.mindir")], capture_output=True, text=True,
            timeout=240, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
