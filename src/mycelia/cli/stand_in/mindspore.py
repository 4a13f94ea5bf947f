"""``import mindspore`` in the processes that a script under ``mycelia run`` starts."""

from mycelia.alias import stand_in

stand_in(__name__)
