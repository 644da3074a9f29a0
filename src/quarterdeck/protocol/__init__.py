"""The contract of the hub: commands, events, views, API shapes, stream frames, runner frames.

Server and clients import it; it imports only `domain`. The table of commands has the right, the
method and the path of each. `quarterdeck.client` is the client that is typed by it.
"""
