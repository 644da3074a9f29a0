"""The disk of this machine, as far as policy looks at it: where links lead, and what is there.

Blocks: for a thread, or for a worker process.
"""

from __future__ import annotations

import os

from msgspec.structs import replace

from quarterdeck.policy.needs import Context
from quarterdeck.policy.trees import LEFT_OUT, look_once
from quarterdeck.runtime.folder_scan import look_below


def looking_here(context: Context) -> Context:
    """A place on this machine: links are followed, and folders are looked into. For one call."""
    return replace(
        context,
        resolve=os.path.realpath,
        exists=os.path.lexists,
        below=look_once(lambda folder: look_below(folder, LEFT_OUT)),
    )
