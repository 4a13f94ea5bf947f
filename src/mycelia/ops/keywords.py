"""One function under two conventions of keywords.

The API has grown two vocabularies: ``axis``/``keep_dims`` of the first operators and ``dim``/``keepdim`` of
the later ones. Tensor methods take both. :func:`renaming` wraps a function so that further keywords stand
for its own.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from mycelia.core.errors import ArgumentTypeError


def renaming(fn: Callable[..., Any], **further: str) -> Callable[..., Any]:
    """``fn`` that also takes its keywords under other names.

    Args:
        fn: a function.
        further: other name = own name, e.g. ``dim="axis"``.

    Returns:
        The wrapped function.

    Raises:
        ArgumentTypeError: (when called) a keyword is given under both names.

    >>> from mycelia.ops.keywords import renaming
    >>> renaming(lambda x, axis=None: axis, dim="axis")(None, dim=1)
    1
    """

    @wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        if kwargs:
            for other, own in further.items():
                if other in kwargs:
                    if own in kwargs:
                        raise ArgumentTypeError(
                            fn.__name__, other, got=f"a value besides '{own}'", takes="only one of the two"
                        )
                    kwargs[own] = kwargs.pop(other)
        return fn(*args, **kwargs)

    return call


def as_keyword(method: Callable[..., Any], keyword: str) -> Callable[..., Any]:
    """A method of variadic values that also takes them as one keyword: ``x.view(2, 3)``, ``x.view(shape=(2, 3))``.

    >>> from mycelia.ops.keywords import as_keyword
    >>> as_keyword(lambda x, *shape: shape, "shape")(None, shape=(2, 3))
    ((2, 3),)
    """

    @wraps(method)
    def call(self: Any, *values: Any, **given: Any) -> Any:
        if keyword in given and not values:
            values = (given.pop(keyword),)
        return method(self, *values, **given)

    return call
