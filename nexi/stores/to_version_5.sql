-- Until then whole pages had an index of their own.
ALTER TABLE bodies ADD COLUMN terms INTEGER NOT NULL DEFAULT 0;
DROP TABLE IF EXISTS pages;
