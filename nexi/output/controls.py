"""What the terminal needs of `nexi.text.controls`, under the name that the screen's modules import."""

from nexi.text.controls import clean_line, clean_text, escape_json

__all__ = ["clean_line", "clean_text", "escape_json"]
