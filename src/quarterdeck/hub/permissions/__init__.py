"""Every decision about a tool call: policy, open asks, answers, edits and grants."""
