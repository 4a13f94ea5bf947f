"""``import mindspore`` is ``import mycelia``.

A module file, not a package folder: where the real MindSpore is installed too, Python prefers its
folder, and nothing of it is overwritten.
"""

from mycelia.alias import stand_in

stand_in(__name__)
