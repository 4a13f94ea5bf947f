"""``export`` and ``load``: a network as one file, and the file as a graph that runs without its source."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import metadata
from typing import Any, Final

from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, FileFormatError, UnsupportedError
from mycelia.dataset.pipeline import Dataset
from mycelia.export.mindir import SUFFIX, read_program, write_program
from mycelia.frontend.program import Program, stage_program
from mycelia.train.checkpoint.durable_file import replacing
from mycelia.train.checkpoint.encryption import BlockCipher, refuse_encrypted

_FORMATS: Final = ("MINDIR", "ONNX", "AIR")
_OTHER_FORMATS: Final = {
    "ONNX": "ONNX files are not written",
    "AIR": "AIR files are for Ascend chips, and are not written",
}
_DEFAULT_CIPHER: Final = "AES-GCM"
_EXPORT_OPTIONS: Final = ("custom_func", "dataset", "enc_key", "enc_mode", "incremental", "obf_config")
_LOAD_OPTIONS: Final = ("dec_key", "dec_mode", "obf_func")


@dataclass
class MindIRModel:
    """What an exported file says of itself; ``custom_func`` and ``save_mindir`` may change it.

    Attributes:
        producer_name, producer_version: who wrote the file.
        user_info: notes, str to str; they come back as ``GraphCell.user_info``.
    """

    producer_name: str
    producer_version: str
    user_info: dict[str, str]
    _program: Program = field(repr=False)

    def _apply(self, where: str) -> Program:
        """The program with what is noted here."""
        for name in ("producer_name", "producer_version"):
            if not isinstance(getattr(self, name), str):
                raise ArgumentTypeError(where, name, got=type(getattr(self, name)).__name__, takes="a string")
        for key, value in self.user_info.items():
            if not isinstance(key, str) or not isinstance(value, str):
                raise ArgumentTypeError(where, "user_info", got=f"{key!r}: {value!r}", takes="strings by strings")
        program = self._program
        program.producer_name, program.producer_version = self.producer_name, self.producer_version
        program.user_info = dict(self.user_info)
        return program


def export(net: Any, *inputs: Any, file_name: str, file_format: str, **kwargs: Any) -> None:
    """Write a network as a file that runs without the network's source.

    The network is staged once for inputs like these, in the mode it is in (``net.set_train(False)`` first for
    inference), and is not changed. The file holds the graph, control flow included, the parameters it uses
    and everything else it reads. What the network prints, the errors it raises and its own gradients (``bprop``)
    go along; calls of Python code at run time cannot.

    Args:
        net: a Cell, a function (``jit`` or not), or a method.
        inputs: what ``net`` takes, in order: Tensors, nests of them in tuples, lists and dicts, and Python values,
            which become part of the graph. The file is for their shapes and dtypes; a Tensor without data
            (``Tensor(shape=..., dtype=...)``) will do.
        file_name: path of the file; ``.mindir`` is appended if it does not end so, missing folders are made.
        file_format: ``"MINDIR"``. The format is this package's own, not MindSpore's protobuf.
        kwargs: ``enc_key`` (16, 24 or 32 bytes) encrypts the file, with ``enc_mode`` ``"AES-GCM"`` (the
            default), ``"AES-CBC"``, ``"SM4-CBC"`` or a function ``(content, key) -> bytes``; ``custom_func`` is
            called with a :class:`MindIRModel` and may set its ``user_info``; ``incremental`` changes nothing.

    Raises:
        ArgumentTypeError, ArgumentValueError: an argument cannot be what it is.
        UnsupportedError: another format, a ``dataset``, inputs of varying shape, or a network that calls Python
            code when it runs.

    >>> import mycelia as ms, os, tempfile
    >>> net = ms.nn.Dense(3, 2)
    >>> x = ms.ops.ones((4, 3))
    >>> file = os.path.join(tempfile.mkdtemp(), "dense")
    >>> ms.export(net, x, file_name=file, file_format="MINDIR")
    >>> again = ms.nn.GraphCell(ms.load(file + ".mindir"))
    >>> bool((again(x) == net(x)).all())
    True
    """
    _check_options("export", kwargs, _EXPORT_OPTIONS)
    if file_format not in _FORMATS:
        raise ArgumentValueError("export", "file_format", got=repr(file_format), takes=", ".join(map(repr, _FORMATS)))
    if file_format != "MINDIR":
        raise UnsupportedError(
            "export", message=f"file_format='{file_format}': {_OTHER_FORMATS[file_format]}",
            hint='use file_format="MINDIR", which ms.load and nn.GraphCell run',
        )  # fmt: skip
    path = _path("export", file_name)
    for name in ("dataset", "obf_config"):
        if kwargs.get(name) is not None:
            raise UnsupportedError(
                "export", name, got=type(kwargs[name]).__name__, takes="None",
                hint="write the pre-processing as a function of tensors around the network, and export that function"
                if name == "dataset" else None,
            )  # fmt: skip
    if any(isinstance(x, Dataset) for x in inputs):
        raise ArgumentTypeError(
            "export", "inputs", got="a data set", takes="Tensors",
            hint="give one batch of it; write the pre-processing as a function of tensors around the network",
        )  # fmt: skip
    encrypt = _encryption(kwargs.get("enc_key"), kwargs.get("enc_mode", _DEFAULT_CIPHER))
    program = stage_program(net, inputs, "export")
    program.producer_version = _version()
    custom = kwargs.get("custom_func")
    if custom is not None:
        if not callable(custom):
            raise ArgumentTypeError("export", "custom_func", got=type(custom).__name__, takes="a function")
        model = _model_of(program)
        custom(model)
        model._apply("export")
    _write(program, path, encrypt, "export")


def load(file_name: str, **kwargs: Any) -> Program:
    """Read a file that :func:`export` wrote.

    Nothing in the file is executed; every byte of it is checked before anything is used.

    Args:
        file_name: path of the file, which ends in ``.mindir``.
        kwargs: ``dec_key`` and ``dec_mode`` of an encrypted file, as ``enc_key`` and ``enc_mode`` of ``export``; a
            function as ``dec_mode`` is ``(file_name, key) -> bytes``.

    Returns:
        The graph, for ``nn.GraphCell``.

    Raises:
        ArgumentTypeError, ArgumentValueError: the name is no string, does not end in ``.mindir``, or no
            file is there.
        FileFormatError: the file is damaged, encrypted, of a later version, or was not written by ``export``.
    """
    _check_options("load", kwargs, _LOAD_OPTIONS)
    if kwargs.get("obf_func") is not None:
        raise UnsupportedError("load", "obf_func", got=type(kwargs["obf_func"]).__name__, takes="None")
    return _read(file_name, kwargs.get("dec_key"), kwargs.get("dec_mode", _DEFAULT_CIPHER), "load")


def load_mindir(file_name: str) -> MindIRModel:
    """Read what an exported file says of itself, to look at it or to change its ``user_info``.

    Raises:
        The errors of :func:`load`.
    """
    return _model_of(_read(file_name, None, _DEFAULT_CIPHER, "load_mindir"))


def save_mindir(model: MindIRModel, file_name: str) -> None:
    """Write what :func:`load_mindir` gave, graph and parameters included.

    Raises:
        ArgumentTypeError: ``model`` is something else, or a note is no string.

    >>> import mycelia as ms, os, tempfile
    >>> file = os.path.join(tempfile.mkdtemp(), "net.mindir")
    >>> ms.export(lambda x: x + 1, ms.Tensor(1.0), file_name=file, file_format="MINDIR")
    >>> model = ms.load_mindir(file)
    >>> model.user_info["version"] = "2"
    >>> ms.save_mindir(model, file)
    >>> ms.nn.GraphCell(ms.load(file)).user_info
    {'version': '2'}
    """
    if not isinstance(model, MindIRModel):
        raise ArgumentTypeError("save_mindir", "model", got=type(model).__name__, takes="what load_mindir returned")
    _write(model._apply("save_mindir"), _path("save_mindir", file_name), None, "save_mindir")


_Encryption = BlockCipher | Callable[[bytes], bytes] | None


def _version() -> str:
    try:
        return metadata.version("mycelia")
    except metadata.PackageNotFoundError:  # run from its source
        return "unknown"


def _model_of(program: Program) -> MindIRModel:
    return MindIRModel(program.producer_name, program.producer_version, dict(program.user_info), program)


def _check_options(where: str, given: dict[str, Any], known: tuple[str, ...]) -> None:
    for name in given:
        if name not in known:
            raise ArgumentTypeError(
                where, message=f"there is no argument '{name}'", hint=f"there are {', '.join(known)}"
            )


def _path(where: str, file_name: Any) -> str:
    if not isinstance(file_name, (str, os.PathLike)):
        raise ArgumentTypeError(where, "file_name", got=type(file_name).__name__, takes="a string")
    path = os.fspath(file_name)
    if not isinstance(path, str) or not path or path.endswith(os.sep):
        raise ArgumentValueError(where, "file_name", got=repr(path), takes="the name of a file")
    path += "" if path.endswith(SUFFIX) else SUFFIX
    if os.path.isdir(path):
        raise ArgumentValueError(where, "file_name", got=f"'{path}', which is a folder", takes="the name of a file")
    return path


def _encryption(key: Any, mode: Any) -> _Encryption:
    if key is None:
        return None
    if callable(mode):
        if not isinstance(key, bytes):
            raise ArgumentTypeError("export", "enc_key", got=type(key).__name__, takes="bytes")
        return lambda content: mode(content, key)
    return BlockCipher(key, mode, "export", "enc_key")


def _write(program: Program, path: str, encrypt: _Encryption, where: str) -> None:
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    with replacing(path) as temporary, open(temporary, "wb") as file:
        if encrypt is None:
            write_program(program, file, where)
        elif isinstance(encrypt, BlockCipher):
            with encrypt.sink(file) as sink:
                write_program(program, sink, where)
        else:
            plain = io.BytesIO()
            write_program(program, plain, where)
            made = encrypt(plain.getvalue())
            if not isinstance(made, bytes):
                raise ArgumentTypeError(where, "enc_mode", got=f"a function that returns {type(made).__name__}",
                                        takes="a function that returns bytes")  # fmt: skip
            file.write(made)


def _read(file_name: Any, key: Any, mode: Any, where: str) -> Program:
    if not isinstance(file_name, (str, os.PathLike)):
        raise ArgumentTypeError(where, "file_name", got=type(file_name).__name__, takes="a string")
    path = os.fspath(file_name)
    if not isinstance(path, str) or not path.endswith(SUFFIX):
        raise ArgumentValueError(where, "file_name", got=repr(path), takes=f"a name that ends in '{SUFFIX}'")
    if not os.path.isfile(path):
        raise ArgumentValueError(where, "file_name", got=f"'{path}'", takes="the name of a file that is there")
    with _opened(path, key, mode, where) as stream:
        return read_program(stream, path, where)


def _opened(path: str, key: Any, mode: Any, where: str) -> io.BufferedIOBase:
    if key is None:
        refuse_encrypted(path, where, "dec_key")
        return open(path, "rb")
    if not callable(mode):
        return BlockCipher(key, mode, where, "dec_key").open(path)
    if not isinstance(key, bytes):
        raise ArgumentTypeError(where, "dec_key", got=type(key).__name__, takes="bytes")
    plain = mode(path, key)
    if not isinstance(plain, bytes):
        raise FileFormatError(where, message=f"{path}: dec_mode returned {type(plain).__name__} instead of bytes")
    return io.BytesIO(plain)
