"""Large blocks that are freed go back to the system."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

from support.bounds import SECONDS

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library"),
]

PROGRAM = """
import sys
from pathlib import Path
from quarterdeck.runtime.allocator import bound_free_memory

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

print(bound_free_memory())
# A large block that was freed teaches glibc to keep large blocks. Then frames of half a
# megabyte are made, with something small after each that stays.
bytearray(30 * 2**20)
before = resident()
frames, small = [], []
for _ in range(60):
    frames.append(bytearray(b"x") * (512 * 1024))
    small.append(bytearray(1000))
del frames
print(resident() - before)
"""


def grown(**env: str) -> tuple[bool, int]:
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**{k: v for k, v in os.environ.items() if "MALLOC" not in k}, **env},
        capture_output=True,
        text=True,
        check=True,
        timeout=SECONDS,
    )
    done, size = ended.stdout.split()
    return done == "True", int(size)


def test_freed_frames_do_not_stay_in_memory() -> None:
    done, size = grown()
    assert done
    assert size < 4 * 2**20


def test_what_the_environment_sets_stays_in_force() -> None:
    done, _ = grown(MALLOC_ARENA_MAX="4")
    assert not done
