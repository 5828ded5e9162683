"""nexi: ask the web, keep what you learn, prove every sentence."""

__version__ = "0.2.0"
