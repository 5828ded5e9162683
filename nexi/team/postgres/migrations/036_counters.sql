-- What every request asks for is a counter, and what is listed or searched has an index, so that nothing gets slower with what
-- a person has done before. The index of trigrams needs an extension: see _ADD_TRIGRAMS in database.py.
create table storage (
    owner uuid primary key references people on delete cascade,
    bytes bigint not null default 0             -- of ended runs, past answers and page texts
) with (fillfactor = 50);

alter table page_owners add column bytes bigint not null default 0;
update page_owners set bytes = octet_length(body) from pages where pages.digest = page_owners.digest;

alter table runs add column words text not null default '';     -- the question, case-folded
update runs set words = lower(question);

create index runs_by_state on runs (owner, state, created desc);
create index runs_by_time on runs (created desc);

insert into storage (owner, bytes)
    select people.id,
        coalesce((select sum(bytes) from runs where owner = people.id and state in ('finished', 'failed')), 0)
        + coalesce((select sum(octet_length(entry)) from history where owner = people.id), 0)
        + coalesce((select sum(bytes) from page_owners where owner = people.id), 0)
    from people;

create function add_storage(who uuid, amount bigint) returns void volatile language plpgsql security definer
    set search_path from current as $$
begin
    if amount > 0 then
        insert into storage (owner, bytes) values (who, amount)
            on conflict (owner) do update set bytes = storage.bytes + excluded.bytes;
    elsif amount < 0 then                       -- of a person who is being deleted, the row may be gone
        update storage set bytes = greatest(0, bytes + amount) where owner = who;
    end if;
end $$;

-- the arguments: plus or minus, and the size of a row
create function count_storage() returns trigger language plpgsql security definer set search_path from current as $$
begin
    execute format('select add_storage(owner, %s sum(%s)::bigint) from changed group by owner order by owner',
        tg_argv[0], tg_argv[1]);
    return null;
end $$;
create function count_ended_run() returns trigger language plpgsql security definer set search_path from current as $$
begin
    perform add_storage(new.owner, new.bytes);
    return null;
end $$;

create trigger history_is_added after insert on history referencing new table as changed
    for each statement execute function count_storage('+', 'octet_length(entry)');
create trigger history_is_removed after delete on history referencing old table as changed
    for each statement execute function count_storage('-', 'octet_length(entry)');
create trigger page_is_added after insert on page_owners referencing new table as changed
    for each statement execute function count_storage('+', 'bytes');
create trigger page_is_removed after delete on page_owners referencing old table as changed
    for each statement execute function count_storage('-', 'bytes');
create trigger run_is_removed after delete on runs referencing old table as changed
    for each statement execute function count_storage('-', 'case when state in (''finished'', ''failed'') then bytes else 0 end');
create trigger run_has_ended after update on runs for each row
    when (new.state in ('finished', 'failed') and old.state not in ('finished', 'failed')) execute function count_ended_run();
create trigger ended_run_is_added after insert on runs for each row
    when (new.state in ('finished', 'failed')) execute function count_ended_run();

create or replace function stored_bytes(who uuid) returns bigint stable language sql security definer
    set search_path from current as $$
    select (
        coalesce((select bytes from storage where owner = who), 0)
        + coalesce((select sum(bytes) from runs where owner = who and state = 'running'), 0)
        + coalesce((select bytes from collections where owner = who), 0)
    )::bigint
$$;

-- Behind policies no index of words may be used, since its operators are not leakproof; these two use it, and ask for the owner.
-- A frequent word is found among the newest rows; a rare one by the index, or without it by reading the older ones.
create function find_history(wanted text, most bigint) returns setof text stable language plpgsql security definer
    set search_path from current set enable_seqscan = off as $$
declare
    pattern text := '%' || replace(replace(replace(wanted, '\', '\\'), '%', '\%'), '_', '\_') || '%';
    oldest bigint;
    listed bigint;
begin
    select min(number) into oldest from
        (select number from history where owner = nexi_owner() order by number desc limit 1000) newest;
    return query select h.entry from history h
        where h.owner = nexi_owner() and h.number >= oldest and h.words like pattern order by h.number desc limit most;
    get diagnostics listed = row_count;
    if listed < most then
        return query select h.entry from history h
            where h.owner = nexi_owner() and h.number < oldest and h.words like pattern
            order by h.number + 0 desc limit most - listed;
    end if;
end $$;

create function find_runs(wanted text, most bigint) returns setof text stable language plpgsql security definer
    set search_path from current set enable_seqscan = off as $$
declare
    pattern text := '%' || replace(replace(replace(wanted, '\', '\\'), '%', '\%'), '_', '\_') || '%';
    oldest timestamptz;
    listed bigint;
begin
    select min(created) into oldest from
        (select created from runs where owner = nexi_owner() order by created desc limit 1000) newest;
    return query select r.run from runs r
        where r.owner = nexi_owner() and r.created >= oldest and r.words like pattern order by r.created desc, r.run desc limit most;
    get diagnostics listed = row_count;
    if listed < most then
        return query select r.run from runs r
            where r.owner = nexi_owner() and r.created < oldest and r.words like pattern
            order by r.created + interval '0' desc, r.run desc limit most - listed;
    end if;
end $$;
