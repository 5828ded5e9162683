-- The tables of the embedded store, but for the index of words. A statement ends with its line.
CREATE TABLE meta(key TEXT PRIMARY KEY, value NOT NULL) WITHOUT ROWID;
CREATE TABLE bodies(
    id INTEGER PRIMARY KEY, digest TEXT NOT NULL UNIQUE, fingerprint TEXT NOT NULL, title TEXT NOT NULL,
    chunks INTEGER NOT NULL, words INTEGER NOT NULL, slot INTEGER NOT NULL DEFAULT -1,
    terms INTEGER NOT NULL DEFAULT 0);
CREATE INDEX bodies_slot ON bodies(slot) WHERE slot >= 0;
CREATE TABLE sources(
    id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, url TEXT NOT NULL, body INTEGER NOT NULL REFERENCES bodies(id),
    title TEXT NOT NULL, domain TEXT NOT NULL, host TEXT NOT NULL, language TEXT NOT NULL, fetched_at TEXT NOT NULL,
    tags TEXT NOT NULL, published TEXT NOT NULL DEFAULT '', updated TEXT NOT NULL DEFAULT '');
CREATE INDEX sources_body ON sources(body);
CREATE INDEX sources_host ON sources(host, body);
CREATE INDEX sources_language ON sources(language, body);
CREATE INDEX sources_fetched ON sources(fetched_at, body);
CREATE TABLE tags(tag TEXT NOT NULL, source INTEGER NOT NULL, PRIMARY KEY(tag, source)) WITHOUT ROWID;
CREATE TABLE chunks(
    id INTEGER PRIMARY KEY, text TEXT NOT NULL, heading TEXT NOT NULL, context TEXT NOT NULL, code TEXT NOT NULL,
    start INTEGER NOT NULL);
CREATE INDEX chunks_code ON chunks(id) WHERE code <> '';
CREATE TABLE unembedded(id INTEGER PRIMARY KEY);
