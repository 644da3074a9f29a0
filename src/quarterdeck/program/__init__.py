"""`quarterdeck-claude`: the CLI for a program, and an agent of the hub.

A program starts it in place of `claude`. It runs the real CLI as its child and connects to the hub.
`arguments` and `router` decide, without I/O; `hub_socket`, `pipes` and `bridge` act.
"""
