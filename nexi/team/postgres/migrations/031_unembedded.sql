-- Chunks that have no vector of the model that is coming, or else of the current one: looking for them among all the others
-- would cost each batch as much as the whole collection.
create table unembedded (
    chunk bigint primary key references chunks on delete cascade,
    collection bigint not null
);
create index unembedded_by_collection on unembedded (collection, chunk);

do $$ begin
    if to_regclass('chunk_vectors') is null then
        insert into unembedded (chunk, collection) select id, collection from chunks;
    else
        insert into unembedded (chunk, collection) select c.id, c.collection from chunks c where not exists (
            select from chunk_vectors v where v.chunk = c.id and v.embedding = (
                select e.id from embeddings e where e.collection = c.collection and e.state in ('building', 'current')
                order by e.state limit 1
            )
        );
    end if;
end $$;
