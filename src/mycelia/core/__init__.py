"""The bottom layer: dtypes and promotion, trees, errors, context, random state."""

from mycelia.core import engine as engine
