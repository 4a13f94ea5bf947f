"""The class forms of operators (``ops.ReLU()(x)``), and functions that go with them."""

from mycelia.ops.legacy import (
    arrays,
    clipping,
    collectives,
    communication,
    detection,
    effects,
    elementwise,
    gathering,
    host_code,
    images,
    linear_algebra,
    losses,
    maps,
    neural,
    optimizers,
    primitive,
    python_values,
    randomness,
    reductions,
)
from mycelia.ops.legacy.arrays import *  # noqa: F403
from mycelia.ops.legacy.clipping import *  # noqa: F403
from mycelia.ops.legacy.collectives import *  # noqa: F403
from mycelia.ops.legacy.communication import *  # noqa: F403
from mycelia.ops.legacy.detection import *  # noqa: F403
from mycelia.ops.legacy.effects import *  # noqa: F403
from mycelia.ops.legacy.elementwise import *  # noqa: F403
from mycelia.ops.legacy.gathering import *  # noqa: F403
from mycelia.ops.legacy.host_code import *  # noqa: F403
from mycelia.ops.legacy.images import *  # noqa: F403
from mycelia.ops.legacy.linear_algebra import *  # noqa: F403
from mycelia.ops.legacy.losses import *  # noqa: F403
from mycelia.ops.legacy.maps import *  # noqa: F403
from mycelia.ops.legacy.neural import *  # noqa: F403
from mycelia.ops.legacy.optimizers import *  # noqa: F403
from mycelia.ops.legacy.primitive import *  # noqa: F403
from mycelia.ops.legacy.python_values import *  # noqa: F403
from mycelia.ops.legacy.randomness import *  # noqa: F403
from mycelia.ops.legacy.reductions import *  # noqa: F403

__all__: list[str] = []
__all__ += arrays.__all__
__all__ += clipping.__all__
__all__ += collectives.__all__
__all__ += communication.__all__
__all__ += detection.__all__
__all__ += effects.__all__
__all__ += elementwise.__all__
__all__ += gathering.__all__
__all__ += host_code.__all__
__all__ += images.__all__
__all__ += linear_algebra.__all__
__all__ += losses.__all__
__all__ += maps.__all__
__all__ += neural.__all__
__all__ += optimizers.__all__
__all__ += primitive.__all__
__all__ += python_values.__all__
__all__ += randomness.__all__
__all__ += reductions.__all__
