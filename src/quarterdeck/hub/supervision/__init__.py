"""What is watched in every session: spending, liveness, crashes."""
