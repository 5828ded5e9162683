-- Schedules of one's own, made without an administrator.
alter table schedules enable row level security;
create policy own_schedules on schedules using (owner = (select nexi_owner()));
create index schedules_by_owner on schedules (owner);
