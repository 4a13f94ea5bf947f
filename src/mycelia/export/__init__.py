"""A network as a file that runs elsewhere: MindIR.

The names are also those of the package, where ``mycelia.export`` is the function: import modules of this
one with ``from mycelia.export.mindir import ...``.
"""

from mycelia.export.api import (
    MindIRModel as MindIRModel,
    export as export,
    load as load,
    load_mindir as load_mindir,
    save_mindir as save_mindir,
)
