"""In the place of the reading model for processes of tests: they choose sentences by their words, as the tests do."""
