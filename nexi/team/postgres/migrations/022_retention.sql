-- When a run that is older or larger than what is kept is deleted; it is marked some days before.
alter table runs add column expires timestamptz;
create index runs_that_expire on runs (expires) where expires is not null;
