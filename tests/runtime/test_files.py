"""Files that are replaced as a whole."""

from __future__ import annotations

import os
import resource
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from quarterdeck.runner.home import Home, RunRecord
from quarterdeck.runtime.files import replace_file


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """A write beyond this size is cut short first and then fails, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("durable", [True, False])
def test_a_file_is_created_and_replaced_for_its_user_alone(tmp_path: Path, durable: bool) -> None:
    path = tmp_path / "token"
    before = os.umask(0)
    try:
        replace_file(path, b"one", durable=durable)
        replace_file(path, b"two", durable=durable)
    finally:
        os.umask(before)
    assert path.read_bytes() == b"two"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [each.name for each in tmp_path.iterdir()] == ["token"]


def test_the_old_file_stays_when_the_new_one_does_not_fit(tmp_path: Path) -> None:
    path = tmp_path / "token"
    replace_file(path, b"old")
    with files_of_at_most(1000), pytest.raises(OSError, match="too large"):
        replace_file(path, b"n" * 5000)
    assert path.read_bytes() == b"old"
    assert [each.name for each in tmp_path.iterdir()] == ["token"]


def test_a_runner_keeps_what_it_knows_of_a_run_when_the_disk_is_full(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.folder_of("r1").mkdir(parents=True)
    record = RunRecord(run="r1", session="s1", mark="m", directory="/a")
    home.write_record(record)
    longer = RunRecord(run="r1", session="s1", mark="m", directory="/" + "b" * 5000)
    with files_of_at_most(1000), pytest.raises(OSError, match="too large"):
        home.write_record(longer)
    assert home.leftover_runs() == [record]


def test_threads_that_replace_one_file_leave_one_whole(tmp_path: Path) -> None:
    path = tmp_path / "state"
    texts = [bytes([65 + n]) * 20_000 for n in range(8)]

    def write(text: bytes) -> None:
        for _ in range(5):
            replace_file(path, text, durable=False)

    threads = [threading.Thread(target=write, args=(text,)) for text in texts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert path.read_bytes() in texts
    assert [each.name for each in tmp_path.iterdir()] == ["state"]


def test_a_link_in_the_place_of_the_draft_is_not_followed(tmp_path: Path) -> None:
    path, other = tmp_path / "token", tmp_path / "other"
    other.write_bytes(b"mine")
    draft = path.with_name(f"token.{os.getpid()}-{threading.get_native_id()}.new")
    draft.symlink_to(other)
    replace_file(path, b"secret")
    assert other.read_bytes() == b"mine"
    assert path.read_bytes() == b"secret"
