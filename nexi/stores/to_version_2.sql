ALTER TABLE bodies ADD COLUMN slot INTEGER NOT NULL DEFAULT -1;
CREATE INDEX bodies_slot ON bodies(slot) WHERE slot >= 0;
CREATE TABLE unembedded(id INTEGER PRIMARY KEY);
INSERT INTO meta VALUES ('epoch', 1), ('slots', 0), ('holes', 0);
