"""The tests of the Telegram front share a house, which ends with the last of them."""
