-- Until then no page had a date.
ALTER TABLE sources ADD COLUMN published TEXT NOT NULL DEFAULT '';
ALTER TABLE sources ADD COLUMN updated TEXT NOT NULL DEFAULT '';
