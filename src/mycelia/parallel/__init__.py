"""Training spread over devices: layouts, strategies, pipelines, the launcher and the planner."""

from mycelia.core.layout import Layout
from mycelia.parallel import placing as placing
from mycelia.parallel.shard import shard

__all__ = ["Layout", "shard"]
