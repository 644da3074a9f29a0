"""A process that runs command lines one after the other, each with files of its own for a terminal.

Most of the time of a short command goes into imports; here they are paid once. A request is a line
of JSON: the arguments and the input. So is an answer: exit code, output, errors.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from contextlib import ExitStack

from quarterdeck.cli import main


def serve() -> None:
    """Answer until the input ends."""
    requests = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "wb")
    for line in requests:
        request = json.loads(line)
        with ExitStack() as stack:
            files = [stack.enter_context(tempfile.TemporaryFile()) for _ in range(3)]
            files[0].write(request["stdin"].encode())
            files[0].seek(0)
            for descriptor, file in enumerate(files):
                os.dup2(file.fileno(), descriptor)
            code = main(request["arguments"])
            sys.stdout.flush()
            sys.stderr.flush()
            for file in files:
                file.seek(0)
            said = [file.read().decode() for file in files[1:]]
        answers.write(json.dumps([code, *said]).encode() + b"\n")
        answers.flush()


if __name__ == "__main__":
    serve()
