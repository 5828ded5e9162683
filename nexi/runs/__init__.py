"""Runs on disk and in memory: the log, the page texts, recordings, sessions and conversations."""
