-- The last record that was stored of each journal, by its sequence and leaf: a journal that
-- has another one there is an older copy of the one that was stored, put back and grown on.
-- A NULL: not known, nothing was stored since this column is there.

ALTER TABLE position ADD COLUMN last_seq INTEGER;
ALTER TABLE position ADD COLUMN last_leaf BLOB;
