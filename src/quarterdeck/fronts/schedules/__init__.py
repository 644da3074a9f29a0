"""Schedules: sessions that the hub starts by itself, at planned times.

A schedule says when (`cron`, `every` or `at`, with a time zone), what (a session with a prompt),
and within which limits. This package decides which planned times are due, records each firing
before it acts on it, and starts sessions through the hub, as any other front does. The service's
composition root is above. It refuses to know HTTP, terminals and web pages.
"""
