"""The outermost bound of a wait in a test.

It is generous on purpose: a busy machine is no defect, and a test that waits for a condition
goes on as soon as it holds. What it catches is a test that would hang for ever.
"""

SECONDS = 120.0

TEST_SECONDS = 3 * SECONDS
"""The bound of a whole test, in which several things are waited for."""
