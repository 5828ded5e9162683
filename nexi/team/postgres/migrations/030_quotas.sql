-- Quotas are taken where a run is admitted: two requests at once cannot both have the last one.
alter table quotas add column storage_bytes bigint;

create table admissions (                       -- runs that were let in, and have no row yet
    owner uuid not null references people on delete cascade,
    at timestamptz not null default now()
);
create index admissions_by_owner on admissions (owner, at);

create function stored_bytes(who uuid) returns bigint stable language sql security definer set search_path from current as $$
    select (
        coalesce((select sum(bytes) from runs where owner = who), 0)
        + coalesce((select sum(octet_length(entry)) from history where owner = who), 0)
        + coalesce((select sum(octet_length(body)) from page_owners join pages using (digest) where owner = who), 0)
        + coalesce((select sum(bytes) from collections where owner = who), 0)
    )::bigint
$$;

create function running_count(who uuid) returns bigint stable language sql security definer set search_path from current as $$
    select (select count(*) from runs where owner = who and state = 'running' and lease_until > now())
        + (select count(*) from admissions where owner = who and at > now() - interval '10 s')
$$;

create function reached_quota(who uuid, is_queued boolean) returns text stable language sql as $$
    select case
        when runs_per_day <= coalesce(usage.runs, 0) then 'runs'
        when tokens_per_day <= coalesce(usage.tokens, 0) then 'tokens'
        when cost_per_day <= coalesce(usage.cost, 0) then 'cost'
        when not is_queued and running <= running_count(who) then 'running'
        when storage_bytes <= stored_bytes(who) then 'storage'
    end
    from quotas left join usage on usage.owner = person and day = (now() at time zone 'utc')::date
    where person = who
$$;

create function take_run(who uuid, is_queued boolean) returns text volatile language plpgsql as $$
declare
    reached text;
begin
    perform pg_advisory_xact_lock(hashtextextended(who::text, 0));
    reached := reached_quota(who, is_queued);
    if reached is null then
        insert into usage (owner, day, runs) values (who, (now() at time zone 'utc')::date, 1)
            on conflict (owner, day) do update set runs = usage.runs + 1;
        delete from admissions where at < now() - interval '10 s' and owner = who;
        if not is_queued then
            insert into admissions (owner) values (who);
        end if;
    end if;
    return reached;
end $$;

insert into usage (owner, day, runs)            -- what waits was not counted until it began
    select owner, (now() at time zone 'utc')::date, count(*) from runs where state = 'waiting' group by owner
    on conflict (owner, day) do update set runs = usage.runs + excluded.runs;
