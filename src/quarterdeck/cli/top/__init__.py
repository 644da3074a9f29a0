"""`quarterdeck top`: sessions, open questions and one session, on the whole screen.

`app` is the screen, `panes` its parts, `card` and `hands` decide what a key does to a question,
`board` follows the hub. It uses the hub through `quarterdeck.client` only. Textual is loaded by
`app`, `panes` and `ask_card`, and by no other command.
"""
