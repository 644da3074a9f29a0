"""A CLI that does nothing but send a file: greets, and answers each prompt with the file's bytes.

Run by path with only the standard library, so that its start costs little. The same program serves
every peer: it does not know whom it talks to.
"""

import json
import os
import sys


def main() -> None:
    if {"-v", "--version"} & set(sys.argv):
        os.write(1, b"2.1.325 (Claude Code)\n")
        return
    with open(os.environ["BENCH_FILE"], "rb") as file:  # noqa: PTH123 - stdlib and quick
        data = file.read()
    for line in sys.stdin.buffer:
        message = json.loads(line)
        if message["type"] == "control_request":
            answer = {"subtype": "success", "request_id": message["request_id"], "response": {}}
            said = {"type": "control_response", "response": answer}
            os.write(1, json.dumps(said).encode() + b"\n")
            if message["request"]["subtype"] == "end_session":
                return
        elif message["type"] == "user":
            view = memoryview(data)
            while view:
                view = view[os.write(1, view) :]


main()
