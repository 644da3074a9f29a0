"""How many examples property tests try: all of them in `make test`, a tenth in `make quick`."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

QUICK = 10
"""In the inner loop, one example of so many is tried."""

_USUAL = 100
_share = 1


def use_profile(*, quick: bool) -> None:
    """The same examples in every run, and no clock: how busy the machine is decides about no test.

    Called before any test module is imported, since `examples` is asked there.
    """
    global _share  # noqa: PLW0603 - decorators of test modules ask for it
    _share = QUICK if quick else 1
    name = "quick" if quick else "steady"
    settings.register_profile(
        name,
        deadline=None,
        derandomize=True,
        suppress_health_check=[HealthCheck.too_slow],
        max_examples=examples(_USUAL),
    )
    settings.load_profile(name)


def examples(number: int) -> int:
    """So many examples; a tenth of them in the inner loop. For `settings(max_examples=…)`."""
    return max(1, number // _share)
