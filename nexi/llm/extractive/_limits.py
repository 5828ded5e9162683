"""How much is read, compared and quoted where no language model answers; each limit stands here once.

Below everything in this package. What combines scores is no limit: such weights are learned and lie in the JSON files.
"""

from __future__ import annotations

MAX_QUESTION_CHARS = 2_000
MAX_QUERY_CHARS = 300
MAX_SENTENCE_CHARS = 1_500
MAX_COMPARED_CHARS = 400  # of one text that the reading model is given

MAX_CANDIDATES = 60  # sentences, units or stretches, the best by their words
MAX_COMPARED = 12  # of those, by the reading model; of units, which are longer, half as many
MAX_PAGES_READ = 4  # at a time
MAX_ROUNDS = 3  # of searching and reading for one question; earlier questions that are remembered
MAX_SENTENCES = 3  # of an answer that quotes no unit of a manual
MAX_ALTERNATIVES = 5  # that are shown side by side: readings of a question, columns of a row, pages of an outline

MAX_WORDS = 60  # of an answer, and of anything that is quoted whole
MAX_BLOCK_WORDS = 90  # the same with a list, a table or code
MAX_SECTION_WORDS = 300  # of a section of a report, and of what a small model is given
MAX_LINE_WORDS = 25  # of an item of a list, and of a heading
MAX_HEAD_WORDS = 8  # of a heading that is quoted before a sentence
MIN_SENTENCE_WORDS = 6  # fewer are seldom a statement, and a question in fewer asks for a whole topic
MIN_SUMMARY_WORDS = 5  # of a sentence that stands for its section
MIN_NAME_CHARS = 4  # a shorter one may mean anything

CERTAIN = 0.9  # the chance from which nothing is added
ENOUGH = 0.4  # the share of what was asked, or of the best score, from which a text bears on a question
SAME = 0.7  # the share of common words or letters from which two texts or words are taken for the same
