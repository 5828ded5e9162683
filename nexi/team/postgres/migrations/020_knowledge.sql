-- Knowledge: pages in chunks, with the words that find them. Vectors need pgvector: see _ADD_VECTORS in database.py.
create table collections (
    id bigint generated always as identity primary key,
    owner uuid unique nulls not distinct references people on delete cascade,   -- null for what the whole team reads
    generation bigint not null default 0,       -- changes with every write
    chunks bigint not null default 0,
    terms bigint not null default 0,
    pages bigint not null default 0,
    bytes bigint not null default 0
);
insert into collections (owner) values (null);

create table bodies (
    id bigint generated always as identity primary key,
    collection bigint not null references collections on delete cascade,
    digest text not null,
    fingerprint text not null,
    chunks int not null,
    words int not null,
    bytes bigint not null,
    length int not null,                        -- in terms
    terms text[] not null,                      -- each once, after the number of the collection
    title_counts int[] not null,
    text_counts int[] not null,
    unique (collection, digest)
);

create table sources (
    id bigint generated always as identity primary key,
    collection bigint not null references collections on delete cascade,
    key text not null,
    body bigint not null references bodies on delete cascade,
    url text not null,
    title text not null,
    domain text not null,
    host text not null collate "C",             -- backwards, so that a domain is a range
    language text not null collate "C",
    fetched_at text not null collate "C",
    tags text[] not null,
    unique (collection, key)
);
create index sources_by_body on sources (body, id);
create index sources_by_time on sources (collection, fetched_at);

create table chunks (
    id bigint primary key,                      -- the number of the body times 65536, plus the place in it
    collection bigint not null,
    body bigint not null references bodies on delete cascade,
    is_code boolean not null,
    content bytea not null,                     -- JSON: text, heading, context, code, start; text columns refuse some characters
    length int not null,
    terms text[] not null,
    head_counts int[] not null,
    text_counts int[] not null
);
create index chunks_by_body on chunks (body);
create index chunks_by_collection on chunks (collection, id);
create index chunks_by_terms on chunks using gin (terms) with (fastupdate = off);   -- a long pending list slows readers

create table embeddings (
    id bigint generated always as identity primary key,
    collection bigint not null references collections on delete cascade,
    embedder text not null,
    dims int not null,
    state text not null check (state in ('building', 'current', 'former')),
    unique (collection, state)
);
