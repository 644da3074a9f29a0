"""Editors as clients of the hub, over the Agent Client Protocol (ACP) on stdin and stdout.

`rpc` has the JSON-RPC connection, `v1` what version 1 of the protocol says (pure), `session_feed`
one session of the hub that an editor has open, and `agent` the methods that an editor calls. All
goes through `quarterdeck.client` with one person's token; nothing is stored. It reads no file and
starts no program of the editor (`fs/*`, `terminal/*`): agents work on the machines of the hub.
"""
