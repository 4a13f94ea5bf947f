"""``python -m mycelia.cli`` is the ``mycelia`` command."""

import sys

from mycelia.cli import main

if __name__ == "__main__":
    sys.exit(main())
