CREATE TABLE meta(key TEXT PRIMARY KEY, value NOT NULL) WITHOUT ROWID;
CREATE TABLE bodies(
    id INTEGER PRIMARY KEY, digest TEXT NOT NULL UNIQUE, fingerprint TEXT NOT NULL, title TEXT NOT NULL,
    chunks INTEGER NOT NULL, words INTEGER NOT NULL);
CREATE TABLE sources(
    id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, url TEXT NOT NULL, body INTEGER NOT NULL REFERENCES bodies(id),
    title TEXT NOT NULL, domain TEXT NOT NULL, host TEXT NOT NULL, language TEXT NOT NULL, fetched_at TEXT NOT NULL,
    tags TEXT NOT NULL);
CREATE INDEX sources_body ON sources(body);
CREATE INDEX sources_host ON sources(host, body);
CREATE INDEX sources_language ON sources(language, body);
CREATE INDEX sources_fetched ON sources(fetched_at, body);
CREATE TABLE tags(tag TEXT NOT NULL, source INTEGER NOT NULL, PRIMARY KEY(tag, source)) WITHOUT ROWID;
CREATE TABLE chunks(
    id INTEGER PRIMARY KEY, text TEXT NOT NULL, heading TEXT NOT NULL, context TEXT NOT NULL, code TEXT NOT NULL,
    start INTEGER NOT NULL);
CREATE INDEX chunks_code ON chunks(id) WHERE code <> '';
CREATE TABLE vectors(body INTEGER PRIMARY KEY, data BLOB NOT NULL);
CREATE VIRTUAL TABLE words USING fts5(text, head, content='', tokenize="porter ascii tokenchars '_.+#'");
INSERT INTO meta VALUES ('terms', 1), ('generation', 2), ('embedder', 'letters'), ('dims', 2);
INSERT INTO bodies VALUES (1, 'd1', 'f1', 'Moon', 2, 8), (2, 'd2', 'f2', '', 1, 3);
INSERT INTO sources VALUES
    (1, '//space.example/moon', 'https://space.example/moon', 1, 'Moon', 'space.example', 'example.space.', 'en',
        '2026-01-01T00:00:00+00:00', '["space"]'),
    (2, '//pets.example/cat', 'https://pets.example/cat', 2, '', 'pets.example', 'example.pets.', '', '', '[]');
INSERT INTO tags VALUES ('space', 1);
INSERT INTO chunks VALUES (65536, 'The moon is far.', '', '', '', 0), (65537, 'It orbits the earth.', '', '', '', 17),
    (131072, 'Cats purr softly.', '', '', '', 0);
INSERT INTO words(rowid, text, head) VALUES (65536, 'the moon is far', 'moon'), (65537, 'it orbits the earth', 'moon'),
    (131072, 'cats purr softly', '');
INSERT INTO vectors VALUES (1, X'0000803F00000000000000000000803F');
PRAGMA application_id = 1313167433;
PRAGMA user_version = 1;
