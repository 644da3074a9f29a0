"""The content security policy of the hub's pages: what a browser runs and loads for them.

Owns its text. The gate sends it with everything, and `pages` with the hash of the one script that
is part of the web app's page. Nothing else that is written into a page is ever run.
"""

from __future__ import annotations

import base64
import hashlib
import re

_SCRIPTS = "script-src 'self'"
POLICY = "; ".join(
    (
        "default-src 'none'",
        _SCRIPTS,
        "style-src 'self'",
        "img-src 'self' data: blob:",
        "font-src 'self'",
        "connect-src 'self'",
        "manifest-src 'self'",
        "worker-src 'self'",
        "frame-src 'self'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    )
)
_INLINE = re.compile(rb"<script>(.*?)</script>", re.DOTALL)


def policy_for(page: bytes) -> str:
    """The policy of a page of the build, which allows the scripts in it as they are."""
    digests = (hashlib.sha256(script).digest() for script in _INLINE.findall(page))
    hashes = "".join(f" 'sha256-{base64.b64encode(one).decode()}'" for one in digests)
    return POLICY.replace(_SCRIPTS, _SCRIPTS + hashes)
