"""How long an owner waits for a hub, compared with an idle hub at the same moments.

A program of its own, so that the test beside it takes none of its time:

    python -m support.owner_watch < hubs.json

The first line of stdin is a list of two hubs: the one that is attacked, and the idle one. It asks
both the same at the same moment, again and again, until stdin ends, and prints a line for each
round: `[path, seconds of the attacked, seconds of the idle]`. One round in eight answers a question
of an agent, which both hubs have, by a request, and one by a command of the stream; after an answer
the agent asks again.

On a busy machine a process waits for a processor. The kernel counts that time, for each thread
(`schedstat`). It is subtracted for the hub's event loop, for the one of its other threads that
waited longest (which may have had the interpreter meanwhile), and for the asking thread. What is
left is what the hub itself took, or what it waited for.
"""

from __future__ import annotations

import http.client
import json
import select
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from websockets.sync.client import connect

PATHS = ("/api/whoami", "/api/asks", "/api/sessions", "/api/tokens", "/api/policy", "/healthz")
ANSWER = "/api/asks/{}/answer"
STREAM_ANSWER = "/api/stream ask.answer"
ALLOW = b'{"answer": {"answer": "allow"}}'
SECONDS = 120.0
PAUSE = 0.02


def queued(task: str) -> float:
    """How long a thread has waited for a processor, in seconds; 0 where nobody counts it."""
    try:
        return int(Path(f"/proc/{task}/schedstat").read_text().split()[1]) / 1e9
    except (OSError, IndexError, ValueError):
        return 0.0


def queued_threads(pid: int) -> dict[str, float]:
    """The same for each thread of a process."""
    try:
        tasks = [task.name for task in Path(f"/proc/{pid}/task").iterdir()]
    except OSError:
        return {}
    return {task: queued(f"{pid}/task/{task}") for task in tasks}


class Asker:
    """One hub, one connection, one thread at a time."""

    def __init__(self, port: int, token: str, pid: int) -> None:
        self._port, self._pid = port, pid
        self._headers = {
            "Authorization": f"Bearer {token}",
            "Accept": "application/json",
            "Content-Type": "application/json",
        }
        self._connection = self._connect()
        self._stream = connect(
            f"ws://127.0.0.1:{port}/api/stream",
            additional_headers={"Authorization": f"Bearer {token}"},
            open_timeout=SECONDS,
            proxy=None,
        )

    def ask(self, path: str) -> float:
        """Ask once; gives the seconds that the hub took."""
        if path == STREAM_ANSWER:
            return self._answer_by_stream(self._open_question())
        if path == ANSWER:
            return self._timed("POST", ANSWER.format(self._open_question()), ALLOW)[0]
        return self._timed("GET", path)[0]

    def _answer_by_stream(self, ask: str) -> float:
        """Answer a question by a command; gives the seconds that the hub took."""
        command = {"command": "ask.answer", "ask": ask, "answer": {"answer": "allow"}}
        frame = json.dumps({"t": "command", "id": ask, "command": command})

        def exchange() -> tuple[int, bytes]:
            self._stream.send(frame)
            while True:
                answer = self._stream.recv(SECONDS)
                found = json.loads(answer)
                if found.get("id") == ask:
                    return (200 if found["t"] == "done" else 0), str(answer).encode()

        return self._measured(STREAM_ANSWER, exchange)[0]

    def _open_question(self) -> str:
        """The id of a question; waits until there is one."""
        ends = time.monotonic() + SECONDS
        while time.monotonic() < ends:
            found = json.loads(self._timed("GET", "/api/asks")[1])["asks"]
            if found:
                return str(found[0]["opened"]["ask"])
            time.sleep(PAUSE)
        raise AssertionError("no agent asks")

    def _timed(self, method: str, path: str, body: bytes | None = None) -> tuple[float, bytes]:
        """One request: the seconds that the hub took, and the answer."""

        def exchange() -> tuple[int, bytes]:
            try:
                return self._exchange(method, path, body)
            except (http.client.RemoteDisconnected, ConnectionError):
                # An idle connection may be closed for a new one: the next one is taken at once.
                self._connection.close()
                self._connection = self._connect()
                return self._exchange(method, path, body)

        return self._measured(path, exchange)

    def _measured(
        self, path: str, exchange: Callable[[], tuple[int, bytes]]
    ) -> tuple[float, bytes]:
        before, own = queued_threads(self._pid), queued("thread-self")
        began = time.monotonic()
        status, got = exchange()
        took = time.monotonic() - began
        if status != 200:
            raise AssertionError(f"{path}: {status} {got[:300]!r}")
        waited = {
            task: seconds - before.get(task, seconds)
            for task, seconds in queued_threads(self._pid).items()
        }
        loop = waited.pop(str(self._pid), 0.0)
        others = max(waited.values(), default=0.0)
        return max(0.0, took - loop - others - (queued("thread-self") - own)), got

    def _exchange(self, method: str, path: str, body: bytes | None) -> tuple[int, bytes]:
        self._connection.request(method, path, body, self._headers)
        answer = self._connection.getresponse()
        return answer.status, answer.read()

    def _connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self._port, timeout=SECONDS)


def at_once(calls: list[Callable[[], float]]) -> list[float]:
    """Call all at the same moment. Raises what one of them raised."""
    results = [0.0] * len(calls)
    errors: list[Exception] = []
    ready = threading.Barrier(len(calls))

    def run(number: int) -> None:
        ready.wait(SECONDS)
        try:
            results[number] = calls[number]()
        except Exception as error:  # noqa: BLE001 - raised below, in the thread that counts
            errors.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return results


def main() -> None:
    """Ask until stdin ends."""
    askers = [Asker(*hub) for hub in json.loads(sys.stdin.readline())]
    number = 0
    while not select.select([sys.stdin], [], [], PAUSE)[0]:
        path = (*PATHS, ANSWER, STREAM_ANSWER)[number % (len(PATHS) + 2)]
        number += 1
        took = at_once([partial(asker.ask, path) for asker in askers])
        print(json.dumps([path, *took]), flush=True)  # noqa: T201 - its output


if __name__ == "__main__":
    main()
