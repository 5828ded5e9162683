-- When a stored page was published and last changed, by what it says.
alter table sources add column published text not null default '';
alter table sources add column updated text not null default '';
