"""Telegram: prompts, progress, questions and answers in chats.

`api` speaks the Bot API, `outbox` decides when something is sent, `text` makes Telegram's text of
Markdown. The hub is reached by the public client only.
"""
