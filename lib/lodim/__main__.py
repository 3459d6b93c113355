"""`python -m lodim` runs the command line of `lodim.cli`."""

import sys

from lodim.cli import main

if __name__ == "__main__":
    sys.exit(main())
