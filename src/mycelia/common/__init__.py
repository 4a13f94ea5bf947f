"""Names that scripts import from `mindspore.common`."""
