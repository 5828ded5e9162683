"""The text of an answer: released as it streams, cited, and listed as references."""
