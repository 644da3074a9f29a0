"""The service: sessions, questions and machines; commands in, events out."""
