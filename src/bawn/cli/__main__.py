"""`python -m bawn.cli`."""

import sys

from bawn.cli.main import main

sys.exit(main())
