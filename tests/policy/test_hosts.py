"""One host has many spellings, and a rule that knows one of them knows all."""

from __future__ import annotations

import pytest

from quarterdeck.policy.hosts import LONGEST_URL, host_of, is_meant, may_mean


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://Example.test/x", "example.test"),
        ("http://a.test:80", "a.test"),
        ("http://a.test./", "a.test"),
        ("http://user@b.test/", "b.test"),
        ("http://user:p@x@b.test/", "b.test"),
        ("http://a.test\\@b.test/", None),
        ("http://a.test /", None),
        ("file:///etc/passwd", None),
        ("a.test", None),
        ("http://[::1]/", "[::1]"),
        ("http://[0:0::1]:80/", "[::1]"),
        ("http://\u00e4.test/", None),
        ("http://[", None),
        ("http://[::1]x/", None),
        ("http://a]b/", None),
        (" \thttps://a.test/\n", "a.test"),
        ("https://a.te\nst/", "a.test"),
        ("https:a.test", "a.test"),
        ("https:////a.test", "a.test"),
        ("https://a%2Etest/", "a.test"),
        ("https://%41.test/", "a.test"),
        ("https://a%00.test/", None),
        ("https://a%ff.test/", None),
        ("https://a..test/", None),
        ("https://a.test../", None),
        ("http://\uff41\u3002test/", None),
        ("http://fa\u00df.test/", None),
        ("http://2852039166/", "169.254.169.254"),
        ("http://0xa9fea9fe/", "169.254.169.254"),
        ("http://0251.0376.0251.0376/", "169.254.169.254"),
        ("http://169.254.43518/", "169.254.169.254"),
        ("http://169.16689662/", "169.254.169.254"),
        ("http://127.1/", "127.0.0.1"),
        ("http://0/", "0.0.0.0"),
        ("http://0x/", "0.0.0.0"),
        ("http://256.1.1.1/", None),
        ("http://1.2.3.4.5/", None),
        ("http://09.1/", None),
        ("http://4294967296/", None),
        ("http://1.2.3.a/", "1.2.3.a"),
        ("http://" + "a" * LONGEST_URL, None),
    ],
)
def test_a_url_goes_to_one_host_or_to_none(url: str, host: str | None) -> None:
    assert host_of(url) == host


def test_a_rule_may_spell_its_host_in_any_way() -> None:
    assert is_meant("0x7f.1", "127.0.0.1")
    assert is_meant("Evil.test.", "evil.test")
    assert not is_meant("evil.test", "not-evil.test")


@pytest.mark.parametrize(
    ("pattern", "host", "expected"),
    [
        ("evil.test", "evil.test", True),
        ("evil.test", "sub.evil.test", None),
        ("evil.test", "not-evil.test", False),
        ("sub.evil.test", "evil.test", False),
        ("*.evil.test", "evil.test", False),
        ("169.254.169.254", "[::ffff:a9fe:a9fe]", None),
        ("169.254.169.254", "[::a9fe:a9fe]", None),
        ("169.254.169.254", "[64:ff9b::a9fe:a9fe]", None),
        ("169.254.169.254", "[2002:a9fe:a9fe::]", None),
        ("127.0.0.1", "[::1]", None),
        ("127.0.0.1", "[::]", None),
        ("127.0.0.1", "127.0.0.2", None),
        ("localhost", "127.0.0.1", None),
        ("localhost", "0.0.0.0", None),
        ("localhost", "a.localhost", None),
        ("127.0.0.1", "128.0.0.1", False),
        ("evil.test", None, None),
    ],
)
def test_another_name_of_the_same_machine_may_be_meant(
    pattern: str, host: str | None, expected: bool | None
) -> None:
    assert may_mean(pattern, host) is expected
