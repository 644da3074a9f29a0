"""Version 1 of the protocol: the hub's words as those of ACP, and back. Pure.

`settings` has what a session offers and is, `updates` what happens in it, `asks` its questions, and
`prompts` what an editor sends. Another version of the protocol gets a package of its own beside
this one. Types are those of the `acp` package; no I/O, no event loop.
"""
