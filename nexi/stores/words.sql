-- The index of words. Its segments are few and large: half of an insert was merging them. A statement ends with its line.
CREATE VIRTUAL TABLE words USING fts5(text, title, head, content='', tokenize="ascii tokenchars '_.+#'");
CREATE VIRTUAL TABLE word_places USING fts5vocab(words, instance);
INSERT INTO words(words, rank) VALUES ('hashsize', 8388608);
INSERT INTO words(words, rank) VALUES ('automerge', 8);
