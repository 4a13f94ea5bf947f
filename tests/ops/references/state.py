"""References of the operators that pass a value on."""

from __future__ import annotations

REFERENCES = {
    "identity": lambda x: x,
    "stop_gradient": lambda x: x,
    "print": lambda x, *, parts: (),
}
