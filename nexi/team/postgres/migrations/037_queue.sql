-- The queue is the table of runs alone. Tables of procrastinate stay for workers of the former version, which may still run.
alter table runs add column losses int not null default 0;      -- writers that were lost since the run last got further
create index runs_in_progress on runs (owner) where state = 'running';
