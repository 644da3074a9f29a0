"""Suites that every implementation of one of our protocols passes: subclass one in your tests."""
