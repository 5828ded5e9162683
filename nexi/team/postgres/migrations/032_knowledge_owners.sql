-- Who else may read the knowledge of a person, and the second wall around knowledge; see 005_owners.sql.
create table knowledge_shares (
    owner uuid not null references people on delete cascade,
    person uuid references people on delete cascade,    -- null stands for the team
    created timestamptz not null default now()
);
create unique index knowledge_shares_by_owner on knowledge_shares (owner, coalesce(person, '00000000-0000-0000-0000-000000000000'));
create index knowledge_shares_by_person on knowledge_shares (person);

alter table knowledge_shares enable row level security;
create policy own_knowledge_shares on knowledge_shares using (owner = (select nexi_owner()));
create policy knowledge_shared_with_me on knowledge_shares for select using (
    person = (select nexi_owner()) or (person is null and (select nexi_owner()) is not null)
);

create function readable_collections() returns bigint[] stable language sql security definer set search_path from current as $$
    select coalesce(array_agg(id), '{}') from collections where nexi_owner() is not null and (
        owner is null or owner = any(array(
            select nexi_owner() union select s.owner from knowledge_shares s where s.person = nexi_owner() or s.person is null
        ))
    )
$$;
create function own_collection() returns bigint stable language sql security definer set search_path from current as
    $$ select id from collections where owner = nexi_owner() $$;
create function embeddings_of(wanted bigint[]) returns bigint[] stable language sql security definer
    set search_path from current as
    $$ select coalesce(array_agg(id), '{}') from embeddings where collection = any(wanted) $$;

-- Behind policies the index of terms may not be used, since its operators are not leakproof. These two use it, and check.
create function chunks_with_terms(wanted text[]) returns table (
    id bigint, body bigint, collection bigint, is_code boolean, length int, terms text[], head_counts int[], text_counts int[]
) stable language sql security definer set search_path from current as $$
    select c.id, c.body, c.collection, c.is_code, c.length, c.terms, c.head_counts, c.text_counts from chunks c
    where c.terms && wanted and c.collection = any((select readable_collections())::bigint[])
$$;
create function count_chunks_with_term(wanted text, most int) returns bigint stable language sql security definer
    set search_path from current as $$
    select count(*) from (
        select from chunks c
        where c.terms @> array[wanted] and c.collection = any((select readable_collections())::bigint[]) limit most
    ) found
$$;

alter table collections enable row level security;
create policy readable_collections on collections for select using (id = any((select readable_collections())::bigint[]));
create policy own_collections on collections using (owner = (select nexi_owner()));

alter table bodies enable row level security;
create policy readable_bodies on bodies for select using (collection = any((select readable_collections())::bigint[]));
create policy own_bodies on bodies using (collection = (select own_collection()));

alter table sources enable row level security;
create policy readable_sources on sources for select using (collection = any((select readable_collections())::bigint[]));
create policy own_sources on sources using (collection = (select own_collection()));

alter table chunks enable row level security;
create policy readable_chunks on chunks for select using (collection = any((select readable_collections())::bigint[]));
create policy own_chunks on chunks using (collection = (select own_collection()));

alter table embeddings enable row level security;
create policy readable_embeddings on embeddings for select using (collection = any((select readable_collections())::bigint[]));
create policy own_embeddings on embeddings using (collection = (select own_collection()));

alter table unembedded enable row level security;
create policy own_unembedded on unembedded using (collection = (select own_collection()));
