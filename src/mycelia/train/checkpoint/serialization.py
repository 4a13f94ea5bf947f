"""Checkpoints: ``save_checkpoint``, ``load_checkpoint`` and their asynchronous forms.

What is to be saved is turned into names and values, checked as a whole, and written by one of the two
formats (``ckpt_format``, ``safetensors_format``). A background save takes a copy of every value before
the call returns.
"""

from __future__ import annotations

import functools
import io
import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Final

import numpy as np

from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, MyceliaError, SourceLocation, user_location
from mycelia.tensor import Parameter, Tensor
from mycelia.train.checkpoint import background, ckpt_format, safetensors_format
from mycelia.train.checkpoint.ckpt_format import CkptReader, CkptValue
from mycelia.train.checkpoint.encryption import BlockCipher, refuse_encrypted
from mycelia.train.checkpoint.net_loading import HasParameters, check_flag, check_net, load_param_into_net
from mycelia.train.checkpoint.safetensors_format import SafetensorsReader

_logger = logging.getLogger("mycelia")
_SAVE: Final = "save_checkpoint"
_LOAD: Final = "load_checkpoint"
_FORMATS: Final = ("ckpt", "safetensors")
_OPTIONS: Final = ("incremental", "global_step_num", "remove_redundancy")
_DEFAULT_MODE: Final = "AES-GCM"

LoadedValue = Parameter | str | list[np.ndarray[Any, Any]]
"""A Parameter; a string that was in ``append_dict``; or keys, values and status of a map parameter."""


def save_checkpoint(
    save_obj: HasParameters | Sequence[Any] | Mapping[str, Any],
    ckpt_file_name: str | os.PathLike[str],
    integrated_save: bool = True,
    async_save: bool | str = False,
    append_dict: Mapping[str, Any] | None = None,
    enc_key: bytes | None = None,
    enc_mode: str = _DEFAULT_MODE,
    choice_func: Callable[[str], bool] | None = None,
    crc_check: bool = False,
    format: str = "ckpt",
    **kwargs: Any,
) -> None:
    """Save parameters to a file that MindSpore reads, too.

    The file appears, or is replaced, only when it is complete; its owner alone may read it.

    Args:
        save_obj: a Cell; a list of Parameters, or of dicts ``{"name": str, "data": Tensor}``; or a dict of
            Parameters, Tensors, NumPy arrays and strings by name.
        ckpt_file_name: the file; the format is appended unless the name ends with it.
        integrated_save: a parameter that is spread over devices is saved as a whole. It always is when one
            process holds it all.
        async_save: True, ``"thread"`` or ``"process"``: copy the values, return, and write in the
            background (by a thread in each case). If that fails, the next call that saves or loads says so.
        append_dict: further entries: int, float, bool, str, Tensor, Parameter or Generator by name. They
            replace entries of the same name.
        enc_key: encrypt with this key of 16, 24 or 32 bytes (``.ckpt`` only).
        enc_mode: ``"AES-GCM"``, ``"AES-CBC"`` or ``"SM4-CBC"``.
        choice_func: called with each name; only names for which it returns True are saved.
        crc_check: also save a CRC-32 of the content. Not together with ``enc_key``.
        format: ``"ckpt"`` or ``"safetensors"``.
        **kwargs: ``remove_redundancy`` (bool) is noted in a safetensors file; ``incremental`` and
            ``global_step_num`` are accepted and change nothing.

    Raises:
        ArgumentTypeError, ArgumentValueError: an argument is wrong; nothing is written.
        StateError: an earlier background save failed; nothing is written.
        OSError: the file cannot be written; an older one of its name is unchanged.

    >>> import os, tempfile
    >>> from mycelia import Tensor
    >>> path = os.path.join(tempfile.mkdtemp(), "net")
    >>> save_checkpoint([{"name": "w", "data": Tensor([1.0, 2.0])}], path, append_dict={"epoch": 3})
    >>> load_checkpoint(path + ".ckpt")["epoch"]
    Parameter (name=epoch, shape=(), dtype=Int64, requires_grad=True)
    """
    path = _path_to_save(ckpt_file_name, format)
    check_flag(integrated_save, _SAVE, "integrated_save")
    check_flag(crc_check, _SAVE, "crc_check")
    _check_async(async_save)
    _check_function(choice_func, _SAVE)
    metadata = _checked_options(kwargs)
    cipher = _cipher(enc_key, enc_mode, format, _SAVE, "enc_key")
    if cipher is not None and crc_check:
        raise ArgumentValueError(
            _SAVE, "crc_check", got="True together with enc_key", takes="one of the two",
            hint="AES-GCM notices every change of the file by itself",
        )  # fmt: skip
    found = _appended(_collected(save_obj, choice_func), append_dict)
    background.wait()
    write = functools.partial(_write, path, format, crc_check, cipher, metadata)
    if async_save:
        copies = {name: _on_host(value, copy=True) for name, value in found.items()}
        for name, value in copies.items():
            _FORMAT_CHECKS[format](name, value, _SAVE)
        background.start(path, functools.partial(write, copies))
    else:
        write(found)


def _write(
    path: str,
    format: str,
    crc_check: bool,
    cipher: BlockCipher | None,
    metadata: dict[str, str],
    found: Mapping[str, Any],
) -> None:
    if format == "safetensors":
        arrays = {name: _on_host(value) for name, value in found.items()}
        safetensors_format.write_safetensors(path, arrays, crc_check=crc_check, metadata=metadata)
        return
    values: Iterator[tuple[str, CkptValue]] = ((name, _on_host(value)) for name, value in found.items())
    ckpt_format.write_ckpt(path, values, crc_check=crc_check, wrap=cipher.sink if cipher is not None else None)


_FORMAT_CHECKS: Final = {"ckpt": ckpt_format.check_value, "safetensors": safetensors_format.check_value}


def _on_host(value: Any, copy: bool = False) -> Any:
    if isinstance(value, Tensor):
        return value.asnumpy()
    if isinstance(value, list):
        return [np.array(part) if copy else part for part in value]
    return np.array(value) if copy and isinstance(value, np.ndarray) else value


def _collected(save_obj: Any, choice_func: Callable[[str], bool] | None) -> dict[str, Any]:
    """Names and values of what is to be saved, checked, in order."""
    if isinstance(save_obj, list | tuple):
        pairs = [_named(item, number) for number, item in enumerate(save_obj)]
    elif isinstance(save_obj, dict):
        pairs = [_named_by_key(name, value) for name, value in save_obj.items()]
    else:
        takes = "a Cell, a list or a dict"
        if isinstance(save_obj, type) or not callable(getattr(save_obj, "parameters_and_names", None)):
            raise ArgumentTypeError(_SAVE, "save_obj", got=f"a value of type {type(save_obj).__name__}", takes=takes)
        pairs = [(parameter.name, parameter) for _, parameter in save_obj.parameters_and_names()]
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found and found[name] is not value:
            raise ArgumentValueError(
                _SAVE, "save_obj", got=f"two different values of the name {name!r}", takes="one value of each name",
                hint="a file holds one; give the parameters names of their own",
            )  # fmt: skip
        if choice_func is None or choice_func(name):
            found[name] = value
    return found


def _named(item: Any, number: int) -> tuple[str, Any]:
    if isinstance(item, Parameter):
        return item.name, item
    place = f"element {number}"
    if not isinstance(item, dict) or "name" not in item or "data" not in item:
        got = f"{place} with keys {list(item)}" if isinstance(item, dict) else f"{place} of type {type(item).__name__}"
        raise ArgumentTypeError(_SAVE, "save_obj", got=got, takes='Parameters, or dicts {"name": str, "data": Tensor}')
    name, value = item["name"], item["data"]
    if not isinstance(name, str):
        got = f"{place} with a name of type {type(name).__name__}"
        raise ArgumentTypeError(_SAVE, "save_obj", got=got, takes="strings as names")
    if not isinstance(value, Tensor):
        raise ArgumentTypeError(
            _SAVE, "save_obj", got=f"{name!r} with data of type {type(value).__name__}", takes="a Tensor or Parameter"
        )
    return name, value


def _named_by_key(name: Any, value: Any) -> tuple[str, Any]:
    if not isinstance(name, str):
        raise ArgumentTypeError(_SAVE, "save_obj", got=f"the key {name!r}", takes="strings as keys")
    if not isinstance(value, Tensor | np.ndarray | str | list):
        raise ArgumentTypeError(
            _SAVE, "save_obj", got=f"a value of type {type(value).__name__} under {name!r}",
            takes="Parameters, Tensors, NumPy arrays and strings",
        )  # fmt: skip
    return name, value


def _appended(found: dict[str, Any], append_dict: Mapping[str, Any] | None) -> dict[str, Any]:
    if append_dict is None:
        return found
    if not isinstance(append_dict, dict):
        raise ArgumentTypeError(_SAVE, "append_dict", got=type(append_dict).__name__, takes="a dict or None")
    extra: dict[str, Any] = {}
    for name, value in append_dict.items():
        is_generator = callable(getattr(value, "get_state", None)) and callable(getattr(value, "set_state", None))
        if not isinstance(name, str) or not (is_generator or isinstance(value, int | float | str | Tensor)):
            raise ArgumentTypeError(
                _SAVE, "append_dict", got=f"{name!r}: {type(value).__name__}",
                takes="names, each with an int, float, bool, str, Tensor, Parameter or Generator",
            )  # fmt: skip
        if is_generator:
            value = value.get_state()
        extra[name] = value if isinstance(value, str | Tensor) else Tensor(value)
    return {**found, **extra}


def _path_to_save(name: Any, format: Any) -> str:
    _check_format(format, _SAVE)
    if not isinstance(name, str | os.PathLike):
        raise ArgumentTypeError(_SAVE, "ckpt_file_name", got=type(name).__name__, takes="a string")
    path = os.path.realpath(os.fspath(name))
    if os.path.isdir(path):
        raise IsADirectoryError(f"save_checkpoint: argument 'ckpt_file_name' got the directory {path}; it takes a file")
    if not path.endswith(format):
        path += f".{format}"
    directory = os.path.dirname(path)
    if not os.path.isdir(directory):
        raise FileNotFoundError(f"save_checkpoint: the directory {directory} does not exist; create it first")
    return path


def _check_format(format: Any, where: str) -> None:
    if format not in _FORMATS:
        raise ArgumentValueError(where, "format", got=repr(format), takes='"ckpt" or "safetensors"')


def _check_async(async_save: Any) -> None:
    if not isinstance(async_save, bool | str):
        raise ArgumentTypeError(_SAVE, "async_save", got=repr(async_save), takes='True, False, "thread" or "process"')
    if isinstance(async_save, str) and async_save not in ("thread", "process"):
        raise ArgumentValueError(_SAVE, "async_save", got=repr(async_save), takes='True, False, "thread" or "process"')


def _check_function(choice_func: Any, where: str) -> None:
    if choice_func is not None and not callable(choice_func):
        raise ArgumentTypeError(where, "choice_func", got=repr(choice_func), takes="a function of a name, or None")


def _checked_options(options: dict[str, Any]) -> dict[str, str]:
    for name in options:
        if name not in _OPTIONS:
            raise ArgumentTypeError(_SAVE, message=f"there is no argument '{name}'")
    flag = options.get("remove_redundancy")
    if flag is None:
        return {}
    check_flag(flag, _SAVE, "remove_redundancy")
    return {"remove_redundancy": str(flag)}


def _cipher(key: Any, mode: Any, format: str, where: str, argument: str) -> BlockCipher | None:
    if key is None:
        if not isinstance(mode, str):
            raise ArgumentTypeError(where, argument.replace("key", "mode"), got=repr(mode), takes="a string")
        return None
    if format == "safetensors":
        raise ArgumentValueError(where, argument, got="a key", takes='None with format="safetensors"')
    return BlockCipher(key, mode, where, argument)


def load_checkpoint(
    ckpt_file_name: str | os.PathLike[str] | io.BytesIO,
    net: HasParameters | None = None,
    strict_load: bool = False,
    filter_prefix: str | Sequence[str] | None = None,
    dec_key: bytes | None = None,
    dec_mode: str = _DEFAULT_MODE,
    specify_prefix: str | Sequence[str] | None = None,
    choice_func: Callable[[str], bool] | None = None,
    crc_check: bool = False,
    remove_redundancy: bool = False,
    format: str = "ckpt",
) -> dict[str, LoadedValue]:
    """Load a file of :func:`save_checkpoint` or of MindSpore.

    The whole file is checked before anything of it is used.

    Args:
        ckpt_file_name: the file, whose name ends with the format; for safetensors also an ``io.BytesIO``.
        net: a Cell to load the values into, see :func:`load_param_into_net`.
        strict_load: passed on to it.
        filter_prefix: names that start with one of these are left out.
        dec_key: the key of an encrypted file.
        dec_mode: its mode: ``"AES-GCM"``, ``"AES-CBC"`` or ``"SM4-CBC"``.
        specify_prefix: only names that start with one of these are loaded.
        choice_func: called with each name; only names for which it returns True are loaded. The prefixes,
            where given, take its place.
        crc_check: compare the content with the CRC-32 in the file.
        remove_redundancy: the file was saved without copies that other processes hold.
        format: ``"ckpt"`` or ``"safetensors"``.

    Returns:
        Parameters by name, in the order of the file. Strings of ``append_dict`` come back as strings.

    Raises:
        FileFormatError: the file is damaged, encrypted, or of another format; the message names the file,
            the entry, the byte offset and what is wrong.
        ArgumentValueError: the file does not exist, its name does not end with the format, or nothing is
            left to load.
        ParameterMismatchError: the values do not fit ``net``; nothing was changed.

    >>> import os, tempfile
    >>> from mycelia import Parameter
    >>> path = os.path.join(tempfile.mkdtemp(), "net.ckpt")
    >>> save_checkpoint([Parameter([1.0, 2.0], name="fc.bias"), Parameter([3.0], name="bn.beta")], path)
    >>> load_checkpoint(path, choice_func=lambda name: name.startswith("fc"))
    {'fc.bias': Parameter (name=fc.bias, shape=(2,), dtype=Float32, requires_grad=True)}
    """
    specify = _prefixes(specify_prefix, "specify_prefix")
    filtered = _prefixes(filter_prefix, "filter_prefix")
    check_flag(crc_check, _LOAD, "crc_check")
    check_flag(strict_load, _LOAD, "strict_load")
    check_flag(remove_redundancy, _LOAD, "remove_redundancy")
    _check_function(choice_func, _LOAD)
    if net is not None:
        check_net(net, _LOAD, "net")
    background.wait()  # the file may be the one being saved
    source = _source_to_load(ckpt_file_name, format)
    cipher = _cipher(dec_key, dec_mode, format, _LOAD, "dec_key")

    def chosen(name: str) -> bool:
        if specify is None and filtered is None:
            return choice_func is None or bool(choice_func(name))
        return (specify is None or name.startswith(specify)) and (filtered is None or not name.startswith(filtered))

    with _reader(source, format, cipher) as reader:
        if crc_check and not reader.check_crc():
            _logger.warning("load_checkpoint: %s has no CRC-32 to compare with", reader.path)
        raw = {name: reader.read(name) for name in reader.names if chosen(name)}
        if isinstance(reader, SafetensorsReader):
            remove_redundancy = reader.metadata.get("remove_redundancy", str(remove_redundancy)) == "True"
    if not raw:
        raise ArgumentValueError(
            _LOAD, message=f"nothing is left to load from {reader.path}, which has {len(reader.names)} entries",
            hint="check choice_func, specify_prefix and filter_prefix",
        )  # fmt: skip
    loaded: dict[str, LoadedValue] = {}
    for name in list(raw):
        value = raw.pop(name)
        loaded[name] = Parameter(Tensor(value), name=name) if isinstance(value, np.ndarray) else value
    if net is not None:
        load_param_into_net(net, loaded, strict_load, remove_redundancy)
    return loaded


def load_checkpoint_async(
    ckpt_file_name: str | os.PathLike[str],
    net: HasParameters | None = None,
    strict_load: bool = False,
    filter_prefix: str | Sequence[str] | None = None,
    dec_key: bytes | None = None,
    dec_mode: str = _DEFAULT_MODE,
    specify_prefix: str | Sequence[str] | None = None,
    choice_func: Callable[[str], bool] | None = None,
) -> Future[dict[str, LoadedValue]]:
    """Load a file in the background.

    Args:
        ckpt_file_name: the file; the format follows from its ending.
        net: a Cell to load the values into.
        strict_load: passed on to :func:`load_param_into_net`.
        filter_prefix: names that start with one of these are left out.
        dec_key: the key of an encrypted file.
        dec_mode: its mode.
        specify_prefix: only names that start with one of these are loaded.
        choice_func: called with each name; only names for which it returns True are loaded.

    Returns:
        A future whose ``result()`` is that of :func:`load_checkpoint`, errors included.

    >>> import os, tempfile
    >>> from mycelia import Parameter
    >>> path = os.path.join(tempfile.mkdtemp(), "net.ckpt")
    >>> save_checkpoint([Parameter([1.0], name="w")], path)
    >>> load_checkpoint_async(path).result()
    {'w': Parameter (name=w, shape=(1,), dtype=Float32, requires_grad=True)}
    """
    if not isinstance(ckpt_file_name, str | os.PathLike):
        raise ArgumentTypeError(
            "load_checkpoint_async", "ckpt_file_name", got=type(ckpt_file_name).__name__, takes="a string"
        )
    format = "safetensors" if os.fspath(ckpt_file_name).endswith(".safetensors") else "ckpt"
    executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="load_ckpt")
    load = functools.partial(
        load_checkpoint, ckpt_file_name, net, strict_load, filter_prefix, dec_key, dec_mode, specify_prefix,
        choice_func, format=format,
    )  # fmt: skip
    future = executor.submit(_at, user_location(), load)
    executor.shutdown(wait=False)
    return future


def _at(location: SourceLocation | None, load: Callable[[], dict[str, LoadedValue]]) -> dict[str, LoadedValue]:
    """Run ``load``; its errors show the line that asked for it, not the one that started this thread."""
    try:
        return load()
    except MyceliaError as error:
        error.relocate(location)
        raise


def async_ckpt_thread_status() -> bool:
    """Whether a file is being saved in the background.

    >>> async_ckpt_thread_status()
    False
    """
    return background.is_running()


def _reader(source: str | io.BytesIO, format: str, cipher: BlockCipher | None) -> CkptReader | SafetensorsReader:
    if format == "safetensors":
        return SafetensorsReader(source)
    assert isinstance(source, str)
    if cipher is None:
        refuse_encrypted(source, _LOAD, "dec_key")
        return CkptReader(source)
    return CkptReader(source, opener=cipher.open)


def _source_to_load(name: Any, format: Any) -> str | io.BytesIO:
    _check_format(format, _LOAD)
    if isinstance(name, io.BytesIO) and format == "safetensors":
        return name
    if not isinstance(name, str | os.PathLike):
        takes = "a string" if format == "ckpt" else "a string or an io.BytesIO"
        raise ArgumentTypeError(_LOAD, "ckpt_file_name", got=type(name).__name__, takes=takes)
    path = os.fspath(name)
    if not path.endswith(format):
        other = next((kind for kind in _FORMATS if path.endswith(kind)), None)
        raise ArgumentValueError(
            _LOAD, "ckpt_file_name", got=repr(path), takes=f'a name that ends with the format, "{format}"',
            hint=f'give format="{other}"' if other else None,
        )  # fmt: skip
    path = os.path.realpath(path)
    if not os.path.isfile(path):
        raise ArgumentValueError(_LOAD, "ckpt_file_name", got=repr(path), takes="a file that exists")
    return path


def _prefixes(prefix: Any, argument: str) -> tuple[str, ...] | None:
    if prefix is None:
        return None
    takes = "a string, or a list or tuple of strings"
    if not isinstance(prefix, str | list | tuple):
        raise ArgumentTypeError(_LOAD, argument, got=type(prefix).__name__, takes=takes)
    found = (prefix,) if isinstance(prefix, str) else tuple(prefix)
    for item in found:
        if not isinstance(item, str):
            raise ArgumentTypeError(_LOAD, argument, got=f"an element of type {type(item).__name__}", takes=takes)
    if not found or "" in found:
        raise ArgumentValueError(_LOAD, argument, got=repr(prefix), takes="at least one prefix, and none that is empty")
    return found
