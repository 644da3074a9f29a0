"""`python -m quarterdeck.cli`: the same as `quarterdeck`."""

from __future__ import annotations

import sys

from quarterdeck.cli import main

sys.exit(main())
