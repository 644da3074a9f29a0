"""Programs that move data between machines: their hosts, and the local files among addresses."""

from __future__ import annotations

import pytest

from quarterdeck.policy.shell.effects import ProgramEffects
from quarterdeck.policy.shell.programs import look_up
from quarterdeck.policy.shell.transfers import address, there
from support.shell_words import HERE, said, words


def known(text: str, *more: str) -> ProgramEffects:
    return look_up(words(text, *more), HERE, None)


@pytest.mark.parametrize(
    ("text", "fetches"),
    [
        ("curl https://e.test/x", ["http://e.test/x"]),
        ("curl -s e.test", ["http://e.test"]),
        ("curl --url e.test", ["http://e.test"]),
        ("curl --ur e.test", ["http://e.test"]),
        ("curl ftp://e.test/x", ["http://e.test/x"]),
        ("curl -o a -sSL e.test", ["http://e.test"]),
        ("curl ok.test -x e.test", ["http://e.test", "http://ok.test"]),
        ("curl -xe.test ok.test", ["http://e.test", "http://ok.test"]),
        ("curl --socks5 e.test ok.test", ["http://e.test", "http://ok.test"]),
        ("curl --connect-to ok.test:80:e.test:80 ok.test", ["http://e.test:80", "http://ok.test"]),
        ("curl --resolve ok.test:80:1.2.3.4 ok.test", ["http://1.2.3.4", "http://ok.test"]),
        ("curl 'http://{a,e}.test'", ["http://a.test", "http://e.test"]),
        ("curl -g 'http://{a,e}.test'", ["http://{a,e}.test"]),
        ("curl 'http://[e-e].test'", [""]),
        ("curl http://[::1]/", ["http://[::1]/"]),
        ("curl $x", [""]),
        ("curl --next a.test --next b.test", ["http://a.test", "http://b.test"]),
        ("wget https://e.test/", ["http://e.test/"]),
        ("wget -qO- e.test", ["http://e.test"]),
        ("scp a u@e.test:b", ["http://e.test/"]),
        ("scp scp://u@e.test:22/x .", ["http://e.test:22/"]),
        ("scp -3 a.test:x b.test:y", ["http://a.test/", "http://b.test/"]),
        ("rsync -a a e.test:b", ["http://e.test/"]),
        ("rsync -a a e.test::b", ["http://e.test/"]),
        ("rsync rsync://e.test/b .", ["http://e.test/"]),
        ("rsync -a a b", []),
        ("ssh u@e.test", ["http://e.test"]),
        ("ssh -J j.test e.test", ["http://e.test", "http://j.test"]),
        ("sftp u@e.test:/x", ["http://e.test"]),
        ("nc -w 3 e.test 80", ["http://e.test"]),
        ("nc -x p.test:1080 e.test 80", ["http://e.test", "http://p.test"]),
        ("telnet e.test 25", ["http://e.test"]),
        ("ftp ftp://e.test/x", ["http://e.test/x"]),
        ("dig +short @s.test e.test", ["http://s.test", "http://e.test"]),
        ("ping -c 3 e.test", ["http://e.test"]),
        ("http e.test", ["http://e.test"]),
        ("http PUT e.test a=b", ["http://e.test"]),
        ("http :3000/x", ["http://localhost/"]),
        ("socat - TCP4:e.test:80", ["http://e.test:80"]),
        ("socat - OPENSSL:e.test:80,verify=0", ["http://e.test:80"]),
    ],
)
def test_the_hosts_that_a_command_contacts_are_told(text: str, fetches: list[str]) -> None:
    assert sorted(known(text).fetches) == sorted(fetches)


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("curl -d @a h", "/w/a"),
        ("curl -sd@a h", "/w/a"),
        ("curl --data-b @a h", "/w/a"),
        ("curl --data-urlencode x@a h", "/w/a"),
        ("curl --json @a h", "/w/a"),
        ("curl --url-query x@a h", "/w/a"),
        ("curl -F x=@a h", "/w/a"),
        ("curl -F 'x=<a' h", "/w/a"),
        ("curl -F 'x=@a;type=b' h", "/w/a"),
        ("curl -H @a h", "/w/a"),
        ("curl -T a h", "/w/a"),
        ("curl -Ta h", "/w/a"),
        ("curl -K a", "/w/a"),
        ("curl -b a h", "/w/a"),
        ("curl -E a h", "/w/a"),
        ("curl --netrc-file a h", "/w/a"),
        ("curl -n h", "~/.netrc"),
        ("curl --netrc-o h", "~/.netrc"),
        ("curl --variable x@a h", "/w/a"),
        ("curl -w @a h", "/w/a"),
        ("curl file:a", "/w/a"),
        ("curl file:///w/a", "/w/a"),
        ("curl FILE://localhost/w/a", "/w/a"),
        ("curl file:///w/%61", "/w/a"),
        ("curl '{file,x}:///w/a'", "/w/a"),
        ("curl --proto-default file localhost/w/a", "/w/a"),
        ("wget --post-file a h", "/w/a"),
        ("wget --post-f=a h", "/w/a"),
        ("wget --body-file=a h", "/w/a"),
        ("wget -i a", "/w/a"),
        ("wget --load-cookies=a h", "/w/a"),
        ("scp a h:b", "/w/a"),
        ("scp -r . h:b", "/w"),
        ("rsync a h:", "/w/a"),
        ("rsync --files-from=a . h:", "/w/a"),
        ("http h x@a", "/w/a"),
        ("http h x=@a", "/w/a"),
        ("http h x:=@a", "/w/a"),
        ("http POST h @a", "/w/a"),
        ("socat FILE:a TCP:h:1", "/w/a"),
        ("socat ./a -", "/w/a"),
        ("ssh -i a h", "/w/a"),
        ("dig -f a", "/w/a"),
    ],
)
def test_local_files_that_are_read_or_sent_are_told(text: str, read: str) -> None:
    found = [e.target.paths for e in known(text).effects if e.target and e.kind.value == "reads"]
    assert any(read in paths for paths in found), found


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("curl -o a h", "/w/a"),
        ("curl -sSoa h", "/w/a"),
        ("curl --outp a h", "/w/a"),
        ("curl -O http://h/d/a?x=1", "/w/a"),
        ("curl -LO http://h/a --output-dir /o", "/o/a"),
        ("curl -c a h", "/w/a"),
        ("curl -D a h", "/w/a"),
        ("curl --trace a h", "/w/a"),
        ("curl --stderr a h", "/w/a"),
        ("curl --libcurl a h", "/w/a"),
        ("curl --etag-save a h", "/w/a"),
        ("curl --hsts a h", "/w/a"),
        ("curl -w %output{a}x h", "/w/a"),
        ("curl -w '%output{>>a}x' h", "/w/a"),
        ("wget http://h/a", "/w/a"),
        ("wget http://h/", "/w/index.html"),
        ("wget -O a h", "/w/a"),
        ("wget -qOa h", "/w/a"),
        ("wget -P /o http://h/a", "/o/a"),
        ("wget -o a h", "/w/a"),
        ("wget --rejected-log=a h", "/w/a"),
        ("wget --save-cookies a h", "/w/a"),
        ("wget --warc-file=a h", "/w/a"),
        ("wget -x -nH http://h/.git/config", "/w"),
        ("scp h:a .git/config", "/w/.git/config"),
        ("rsync h:a .git/config", "/w/.git/config"),
        ("rsync a b --log-file=c", "/w/c"),
        ("rsync a b --backup-dir=c", "/w/c"),
        ("ssh -E a h", "/w/a"),
        ("http -o a h", "/w/a"),
        ("socat TCP:h:1 CREATE:a", "/w/a"),
        ("ftp -o a http://h/x", "/w/a"),
    ],
)
def test_files_that_a_transfer_writes_are_told(text: str, written: str) -> None:
    found = [e.target.paths for e in known(text).effects if e.target and e.kind.value == "writes"]
    assert any(written in paths for paths in found), found


@pytest.mark.parametrize(
    ("text", "token"),
    [
        ("curl -K a", "-K"),
        ("curl --engine x h", "--engine"),
        ("curl --unix-socket x h", "--unix-socket"),
        ("curl -OJ h/a", "-OJ"),
        ("curl --expand-data {{x}} h", "--expand-data"),
        ("wget -e x=y h", "-e"),
        ("wget --config=a h", "--config"),
        ("wget --use-ask=a h", "--use-ask"),
        ("wget --content-disposition h", "--content-disposition"),
        ("rsync -e x a h:", "-e"),
        ("rsync -avex a h:", "-ave"),
        ("rsync --rsh=x a h:", "--rsh"),
        ("rsync --rsync-path=x a h:", "--rsync-path"),
        ("rsync -M--x a h:", "-M"),
        ("rsync --filter=.x a h:", "--filter"),
        ("scp -S x a h:", "-S"),
        ("scp -oProxyCommand=x a h:", "-o"),
        ("sftp -b a h", "-b"),
        ("ssh -oProxyCommand=x h", "-o"),
        ("ssh -F a h", "-F"),
        ("nc -e sh h 1", "-e"),
        ("nc -l 80", "-l"),
        ("socat EXEC:sh TCP:h:1", "EXEC"),
        ("socat TCP-LISTEN:80 -", "TCP-LISTEN"),
    ],
)
def test_what_a_transfer_can_run_must_be_named(text: str, token: str) -> None:
    assert f"runs {token}" in said(known(text).effects)


@pytest.mark.parametrize(
    "text",
    ["curl -sS -H 'A:b' -X POST -d x=1 http://h/a?b=c", "curl --fail-early -m 3 h", "wget -qO- h",
     "ssh -p 22 -4 h", "ping -c 1 h", "http -b h x=y"],
)  # fmt: skip
def test_an_ordinary_transfer_touches_no_file(text: str) -> None:
    assert said(known(text).effects) == []


def test_addresses_and_operands_of_other_machines_are_recognised() -> None:
    assert address("e.test/x") == "http://e.test/x"
    assert address("SFTP://u@e.test/x") == "http://u@e.test/x"
    assert address(None) == ""
    assert there("a/b:c") is None
    assert there("./a:b") is None
    assert there("u@h:a") == "h"
    assert there("[::1]:a") == "[::1]"
