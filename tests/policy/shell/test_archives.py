"""Archive programs: their modes decide what is read, written and run."""

from __future__ import annotations

import pytest

from quarterdeck.policy.shell.effects import ProgramEffects
from quarterdeck.policy.shell.programs import look_up
from support.shell_words import HERE, said, words


def known(text: str) -> ProgramEffects:
    return look_up(words(text), HERE, None)


@pytest.mark.parametrize(
    "text",
    [
        "tar cf - a",
        "tar -cf - a",
        "tar cO a",
        "tar -C . -c a",
        "tar c --add-file=a",
        "tar --create --file=x.tar a",
        "tar --creat -vzf x.tar a",
        "tar rf x.tar a",
        "tar uf x.tar a",
        "tar df x.tar a",
        "bsdtar -cf - a",
        "bsdtar -cf - @a",
        "gzip -c a",
        "gzip a",
        "gzip -ck9 a",
        "zcat -f a",
        "bzip2 -c a",
        "bzip2 -zkc a",
        "xz -c a",
        "xz --to-stdout a",
        "zstd -c a",
        "zstd a -o b",
        "zip - a",
        "zip -r x.zip a",
        "zip -qr9 x a",
        "zip -jq - a -x b",
        "7z a x.7z a",
        "7z a -tzip x.zip a",
        "ar rcs x.a a",
        "ar -q x.a a",
    ],
)
def test_what_goes_into_an_archive_is_read(text: str) -> None:
    assert "reads /w/a" in said(known(text).effects)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("tar cf x.tar a", "/w/x.tar"),
        ("tar -c -f x.tar a", "/w/x.tar"),
        ("tar xf a", "/w"),
        ("tar xf a b", "/w/b"),
        ("tar -xf a -C /o", "/o"),
        ("tar xfC a /o", "/o"),
        ("tar xf a --directory=/o", "/o"),
        ("tar xf a --one-top-level=/o", "/o"),
        ("tar cf - --index-file=/o a", "/o"),
        ("tar cf - -g /o a", "/o"),
        ("bsdtar -xf a --cd /o", "/o"),
        ("gunzip .git/config.gz", "/w/.git/config"),
        ("gzip -d .git/config.gz", "/w/.git/config"),
        ("gzip -dS x .git/configx", "/w/.git/config"),
        ("gzip a", "/w/a"),
        ("gzip a", "/w/a.gz"),
        ("bunzip2 b.bz2", "/w/b"),
        ("unxz b.xz", "/w/b"),
        ("zstd -d b.zst", "/w/b"),
        ("zstd -d b -o /o", "/o"),
        ("zip x a", "/w/x"),
        ("zip x a", "/w/x.zip"),
        ("zip -O /o x a", "/o"),
        ("zip -rqO/o x a", "/o"),
        ("zip --out /o x a", "/o"),
        ("zip -lf /o x a", "/o"),
        ("zip -rlf /o x a", "/o"),
        ("zip -b /o x a", "/o"),
        ("unzip a", "/w"),
        ("unzip -qo a b", "/w/b"),
        ("unzip a -d /o", "/o"),
        ("unzip -od/o a", "/o"),
        ("7z x a", "/w"),
        ("7z e a -o/o", "/o"),
        ("ar x a", "/w"),
        ("ar x a b", "/w/b"),
        ("ar x a --output=/o", "/o"),
        ("ar rcs x.a a", "/w/x.a"),
    ],
)
def test_what_an_archive_program_writes_is_told(text: str, written: str) -> None:
    found = [e.target.paths for e in known(text).effects if e.target and e.kind.value == "writes"]
    assert any(written in paths for paths in found), found


@pytest.mark.parametrize(
    ("text", "token"),
    [
        ("tar cIf ./x a.tar b", "cI"),
        ("tar xIf ./x a.tar", "xI"),
        ("tar -I ./x -xf a.tar", "-I"),
        ("tar -xI./x -f a.tar", "-xI"),
        ("tar xf a --use-compress-program=x", "--use-compress-program"),
        ("tar xf a --use-c x", "--use-c"),
        ("tar xf a --to-command=x", "--to-command"),
        ("tar cf a --checkpoint=1 --checkpoint-action=exec=x b", "--checkpoint-action"),
        ("tar cf a --checkpoint-a exec=x b", "--checkpoint-a"),
        ("tar cMFf ./x a b", "cMF"),
        ("tar cf a --rsh-command=x b", "--rsh-command"),
        ("tar xPf a", "xP"),
        ("tar xf a --absolute-names", "--absolute-names"),
        ("tar xf a --transform s,^,/o/,", "--transform"),
        ("tar cf a -T list", "-T"),
        ("tar cf h:a b", "cf"),
        ("bsdtar -cf - --use-compress-program x a", "--use-compress-program"),
        ("zip -T -TT x a b", "-TT"),
        ("zip -rTTx a b", "-TT"),
        ("zip a b --unzip-command x", "--unzip-command"),
        ("zip a b --unzip-c x", "--unzip-c"),
        ("zip a -@", "-@"),
        ("unzip -: -o a", "-:"),
        ("unzip -o: a", "-o:"),
        ("7z x -spf a", "-spf"),
        ("7z a x @list", "@list"),
        ("ar --plugin x t a", "--plugin"),
        ("ar @x", "@"),
        ("ar t @x", "@x"),
        ("xz --files=a", "--files"),
        ("zstd --filelist a", "--filelist"),
        ("cpio -i --absolute-filenames", "--absolute-filenames"),
        ("tar xf a --no-such-option", "--no-such-option"),
    ],
)
def test_what_an_archive_program_runs_must_be_named(text: str, token: str) -> None:
    assert f"runs {token}" in said(known(text).effects)


@pytest.mark.parametrize(
    "text",
    ["tar tf a", "tar -tvzf a", "gzip -l a", "gzip -tv a", "xz -l a", "zcat a", "bzcat a",
     "xzcat a", "unzip -l a", "unzip -p a b", "unzip -Z1 a", "zipinfo a", "7z l a", "ar t a",
     "ar p a b"],
)  # fmt: skip
def test_looking_into_an_archive_only_looks(text: str) -> None:
    found = known(text)
    assert found.looks
    assert said(found.effects) == ["reads /w/a"]


@pytest.mark.parametrize(
    "text", ["tar xf a", "tar tf a -I x", "gzip a", "unzip a", "zip x a", "7z x a", "ar x a"]
)
def test_extracting_does_not_only_look(text: str) -> None:
    assert not known(text).looks


def test_a_folder_goes_into_an_archive_with_all_that_is_in_it() -> None:
    for text in ("tar cf x.tar .", "zip -r x.zip .", "7z a x.7z .", "zip -m -r x.zip ."):
        deep = [e.target.deep for e in known(text).effects if e.target and e.kind.value == "reads"]
        assert deep == [True], text


def test_names_from_the_input_are_not_known() -> None:
    for text in ("cpio -o", "cpio -p /x", "zip - -R a"):
        targets = [e.target for e in known(text).effects if e.kind.value == "reads"]
        assert any(target is not None and not target.paths for target in targets), text
