-- name: be_alone
-- as take_run in migrations/030_quotas.sql
select pg_advisory_xact_lock(hashtextextended(%s::uuid::text, 0))

-- name: become_person
select set_config('role', %s, true), set_config('nexi.owner', %s, true)

-- name: renew
-- runs that began together may spend more than was left: each then answers from what it has, as if it were asked to stop
with mine as (select run from runs where run = any(%s) and holder = %s and state = 'running' order by run for update)
update runs set lease_until = now() + make_interval(secs => %s) where run in (select run from mine)
returning run, epoch, stop_requested, cancel_requested, exists (
    select from quotas join usage on usage.owner = person and day = (now() at time zone 'utc')::date
    where person = runs.owner and (tokens >= tokens_per_day or cost >= cost_per_day)
)

-- name: add_steps
create table if not exists schema_steps (step int primary key, at timestamptz not null default now())

-- name: find_login
select current_user, exists (select from pg_roles where rolname = %s)

-- name: find_tables
select relname from pg_class where relrowsecurity and relnamespace = current_schema::regnamespace
    and not has_table_privilege(%s, oid, 'select')

-- name: add_vectors
-- pgvector may be installed long after nexi, so this is tried at every start.
do $$ begin
    if to_regclass('embeddings') is not null and to_regclass('chunk_vectors') is null
        and exists (select from pg_available_extensions where name = 'vector') then
        begin
            create extension if not exists vector;
            create table chunk_vectors (
                embedding bigint not null references embeddings on delete cascade,
                chunk bigint not null references chunks on delete cascade,
                vector vector not null,
                primary key (embedding, chunk)
            );
            create index chunk_vectors_by_chunk on chunk_vectors (chunk);
        exception when insufficient_privilege then
            raise warning 'nexi may not create the extension vector; knowledge is searched by words alone';
        end;
    end if;
    if to_regproc('readable_collections') is not null
        and exists (select from pg_class where oid = to_regclass('chunk_vectors') and not relrowsecurity) then
        alter table chunk_vectors enable row level security;
        create policy readable_vectors on chunk_vectors for select
            using (embedding = any((select embeddings_of(readable_collections()))::bigint[]));
        create policy own_vectors on chunk_vectors
            using (embedding = any((select embeddings_of(array[own_collection()]))::bigint[]));
    end if;
end $$

-- name: add_trigrams
-- with the owner in the index, a word that is frequent for others costs nobody else anything
do $$ begin
    if to_regclass('history_by_trigrams') is null
        and (select count(*) from pg_available_extensions where name in ('pg_trgm', 'btree_gin')) = 2 then
        begin
            create extension if not exists pg_trgm;
            create extension if not exists btree_gin;
            create index history_by_trigrams on history using gin (owner, words gin_trgm_ops);
            create index runs_by_trigrams on runs using gin (owner, words gin_trgm_ops);
        exception when insufficient_privilege then
            raise warning 'nexi may not create the extensions pg_trgm and btree_gin; old questions have no index';
        end;
    end if;
end $$
