"""Commands that are forked are what commands that are started are."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import anyio
import pytest

from quarterdeck import __version__
from support.bounds import SECONDS
from support.forks import WORKER, Fork, forks

pytestmark = [pytest.mark.anyio, pytest.mark.process]


async def test_a_fork_has_its_own_folder_environment_and_end(tmp_path: Path) -> None:
    env = {"QUARTERDECK_HOME": str(tmp_path), "PATH": os.defpath}
    with forks() as made:
        idle = await made.start(WORKER, env, tmp_path)
        assert await said_by(await made.start(["--version"], env, tmp_path)) == (
            0,
            f"quarterdeck {__version__}\n",
            "",
        )
        code, out, complaint = await said_by(await made.start(["nonsense"], env, tmp_path))
        assert (code, out) == (2, "")
        assert "nonsense" in complaint
        _, shown, _ = await said_by(await made.start(["config", "path"], env, tmp_path))
        assert shown.startswith(str(tmp_path)), shown
        folder = Path(f"/proc/{idle.pid}/cwd").readlink()  # noqa: ASYNC240 - it does not block
        assert folder == tmp_path
        assert os.getsid(idle.pid) == idle.pid
        assert idle.returncode is None, "the ends of others are not its own"
        idle.kill()
        with anyio.fail_after(SECONDS):
            assert await idle.wait() == -signal.SIGKILL
        await idle.aclose()


async def test_a_fork_runs_a_file_as_python_does(tmp_path: Path) -> None:
    """Its arguments, folders of modules, output, errors and end; and what others see of it."""
    (tmp_path / "beside.py").write_text("TEXT = 'from beside it'\n")
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "far.py").write_text("TEXT = 'from the path'\n")
    file = tmp_path / "file.py"
    file.write_text(
        "import os, sys\nimport beside, far\n"
        "assert __name__ == '__main__'\nassert 'json' in sys.modules\n"
        "print(sys.argv[1:], input(), beside.TEXT, far.TEXT, os.environ['MINE'])\n"
        "print('an error', file=sys.stderr)\n"
        "print(open('/proc/self/cmdline').read().rstrip(chr(0)).split(chr(0))[1:])\n"
        "sys.exit(3)\n"
    )
    env = {"PATH": os.defpath, "MINE": "is here", "PYTHONPATH": str(tmp_path / "more")}
    with forks("json") as made:
        fork = await made.start([str(file), "a", "b"], env, tmp_path, merged=True)
        await fork.stdin.send(b"a line\n")
        code, out, complaint = await said_by(fork)
        file.write_text("raise ValueError('of the file')")
        failed, _, why = await said_by(await made.start([str(file)], env, tmp_path))
    assert (code, complaint) == (3, "")
    assert out.splitlines() == [
        "['a', 'b'] a line from beside it from the path is here",
        "an error",
        f"['{file}', 'a', 'b']",
    ]
    assert failed == 1
    assert why.endswith("ValueError: of the file\n")


async def said_by(fork: Fork) -> tuple[int, str, str]:
    with anyio.fail_after(SECONDS):
        out = b"".join([chunk async for chunk in fork.stdout])
        err = b"".join([chunk async for chunk in fork.stderr])
        code = await fork.wait()
    await fork.aclose()
    return code, out.decode(), err.decode()
