"""Draw the digits of ``src/mycelia/demo/digits`` from the original MNIST files.

    python scripts/make_digits.py FOLDER [--out FOLDER]

FOLDER holds the four published files. From each split the same number of images per digit is drawn
without replacement, then the order is shuffled, with a legacy NumPy generator (whose stream is frozen
by NumPy's compatibility policy) and a fixed seed. The results are idx files of the same names, written
by gzip without a time stamp, and PROVENANCE.md with the digests of sources and results.

The idx format: two zero bytes, the type code (8: unsigned byte), the number of dimensions, one
big-endian uint32 per dimension, then the values in C order.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import os
import struct
import sys
from pathlib import Path

import numpy as np

SEED = 20260101
IMAGES, LABELS = "{}-images-idx3-ubyte.gz", "{}-labels-idx1-ubyte.gz"
#: split -> images drawn per digit
PER_DIGIT = {"train": 600, "t10k": 100}
DEFAULT_OUT = Path(__file__).resolve().parent.parent / "src" / "mycelia" / "demo" / "digits"

PROVENANCE = """\
# Where these digits come from

The four `.gz` files are a subset of **MNIST**, the database of handwritten digits by Yann LeCun,
Corinna Cortes and Christopher J. C. Burges: 60,000 training and 10,000 test images of 28 x 28 grey
values, size-normalised and centred, made from NIST's Special Databases 1 and 3. See Y. LeCun,
L. Bottou, Y. Bengio and P. Haffner, "Gradient-based learning applied to document recognition",
Proceedings of the IEEE 86 (11), 1998.

**Licence.** Yann LeCun and Corinna Cortes hold the copyright of MNIST, a derivative work of the
original NIST data sets. MNIST is made available under the terms of the Creative Commons
Attribution-Share Alike 3.0 licence (CC BY-SA 3.0, https://creativecommons.org/licenses/by-sa/3.0/).
This subset is a change of that work and stands under the same licence; the rest of the project does
not (see LICENSE).

**What was changed.** `scripts/make_digits.py` drew {train} of the training images ({train_each} of
each digit) and {test} of the test images ({test_each} of each digit) without replacement, with the
seed {seed}, and shuffled their order. The images and labels themselves are as published, in the idx
format and under the names they were published with. A second run gives the same contents
everywhere, and the same bytes with the same zlib. The contents are what identifies a source: copies of
MNIST are often zipped anew.

## SHA-256 of the sources

| file | SHA-256 as used | SHA-256 of its contents |
|---|---|---|
{sources}

## SHA-256 of the results

| file | SHA-256 | SHA-256 of its contents |
|---|---|---|
{results}
"""


def read_idx(path: Path) -> np.ndarray:
    """The uint8 array of a gzipped idx file; ValueError if the file is not one."""
    data = gzip.decompress(path.read_bytes())
    if len(data) < 4 or data[:3] != b"\0\0\x08":
        raise ValueError(f"{path} is not an idx file of unsigned bytes")
    shape = struct.unpack_from(f">{data[3]}I", data, 4)
    values = np.frombuffer(data, np.uint8, offset=4 + 4 * data[3])
    if values.size != int(np.prod(shape)):
        raise ValueError(f"{path} holds {values.size} values; its header says {shape}")
    return values.reshape(shape)


def idx_bytes(array: np.ndarray) -> bytes:
    """An uncompressed idx file holding ``array`` as unsigned bytes."""
    header = bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
    return header + np.ascontiguousarray(array, np.uint8).tobytes()


def draw(labels: np.ndarray, per_digit: int, generator: np.random.RandomState) -> np.ndarray:
    """Indices of ``per_digit`` images of each of the ten digits, in shuffled order."""
    chosen = []
    for digit in range(10):
        where = np.flatnonzero(labels == digit)
        if len(where) < per_digit:
            raise ValueError(f"there are {len(where)} images of {digit}; {per_digit} are to be drawn")
        chosen.append(generator.choice(where, per_digit, replace=False))
    return generator.permutation(np.concatenate(chosen))


def subset(folder: Path, split: str, per_digit: int, generator: np.random.RandomState) -> dict[str, bytes]:
    """File name -> uncompressed idx file of the images and labels drawn from one split."""
    images, labels = read_idx(folder / IMAGES.format(split)), read_idx(folder / LABELS.format(split))
    if images.ndim != 3 or labels.shape != images.shape[:1]:
        raise ValueError(f"{split}: images {images.shape} and labels {labels.shape} do not belong together")
    indices = draw(labels, per_digit, generator)
    return {
        IMAGES.format(split): idx_bytes(images[indices]),
        LABELS.format(split): idx_bytes(labels[indices]),
    }


def make(folder: Path, out: Path, per_digit: dict[str, int]) -> None:
    """Write the subset and PROVENANCE.md into ``out``; each file is written beside and renamed."""
    generator = np.random.RandomState(SEED)
    files: dict[str, bytes] = {}
    for split, count in per_digit.items():
        files |= subset(folder, split, count, generator)
    packed = {name: gzip.compress(data, 9, mtime=0) for name, data in files.items()}

    def rows(zipped: dict[str, bytes]) -> str:
        sha = {name: [hashlib.sha256(d).hexdigest() for d in (z, gzip.decompress(z))] for name, z in zipped.items()}
        return "\n".join(f"| {name} | `{sha[name][0]}` | `{sha[name][1]}` |" for name in sorted(sha))

    train, test = per_digit["train"], per_digit["t10k"]
    text = PROVENANCE.format(
        train=f"{10 * train:,}",
        test=f"{10 * test:,}",
        train_each=train,
        test_each=test,
        seed=SEED,
        sources=rows({name: (folder / name).read_bytes() for name in files}),
        results=rows(packed),
    )
    out.mkdir(parents=True, exist_ok=True)
    for name, data in (packed | {"PROVENANCE.md": text.encode()}).items():
        beside = out / (name + ".new")
        beside.write_bytes(data)
        os.replace(beside, out / name)


def main(arguments: list[str]) -> int:
    """Command line; returns the exit code."""
    parser = argparse.ArgumentParser(description="Draw the demo's digits from the original MNIST files.")
    parser.add_argument("folder", type=Path, help="folder with the four published .gz files")
    parser.add_argument("--out", type=Path, default=DEFAULT_OUT, help="where to write (default: the package)")
    options = parser.parse_args(arguments)
    try:
        make(options.folder, options.out, PER_DIGIT)
    except (OSError, ValueError) as error:
        print(f"make_digits: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
