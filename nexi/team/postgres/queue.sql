-- name: pick
-- a database that has just started waits for the writers that are still alive
with busy as (
    select owner, count(*) as n from runs
    where (state = 'running' and lease_until > now())
        or (is_queued and state in ('waiting', 'running') and queued_at > now())
    group by owner
)
update runs set queued_at = now() + make_interval(secs => %(reserved)s) where run = (
    select run from runs left join busy using (owner) left join quotas on person = owner
    where is_queued and state in ('waiting', 'running') and queued_at <= now() and (lease_until is null or lease_until < now())
        and (state = 'running' or not %(is_lost)s)
        and (state = 'waiting' or pg_postmaster_start_time() < now() - make_interval(secs => %(lease)s))
        and coalesce(quotas.running, 1000) > coalesce(busy.n, 0)
    order by state = 'running' desc, coalesce(busy.n, 0), queued_at, run
    limit 1 for update of runs skip locked
) returning run, owner
