-- A word without three letters or digits in a row has no trigrams, so an index cannot find it. It is looked for among the newest
-- rows, and among those that the index finds for the other words; to read all rows of a person takes the longer the more there are.
-- The newest rows are read in their order, never by the index, which would read all that have the frequent words;
-- the older ones by the index, which the planner takes for dearer than it is.
create function trigram_words(wanted text) returns text immutable language sql as $$
    select coalesce(string_agg(word, ' '), '') from unnest(string_to_array(wanted, ' ')) word where word ~ '[[:alnum:]]{3}'
$$;

create or replace function find_history(wanted text, most bigint) returns setof text stable language plpgsql security definer
    set search_path from current set enable_seqscan = off set random_page_cost = 1.1 as $$
declare
    condition text := word_condition(wanted);
    indexed text := trigram_words(wanted);
    newest_count bigint := case when indexed = wanted then 1000 else 2000 end;
    oldest bigint;
    listed bigint;
begin
    select min(number) into oldest from
        (select number from history where owner = nexi_owner() order by number desc limit newest_count) newest;
    return query execute format(
        'select entry from (select number, entry, words from history where owner = nexi_owner() order by number desc limit $1) newest '
            'where %s order by number desc limit $2',
        condition
    ) using newest_count, most;
    get diagnostics listed = row_count;
    if listed < most and indexed <> '' then
        return query execute format(
            'select entry from (select number, entry, words from history where owner = nexi_owner() and number < $1 and %s %s) older '
                'where %s order by number + 0 desc limit $2',
            word_condition(indexed),
            case when indexed = wanted then '' else 'limit 2000' end,
            case when indexed = wanted then 'true' else condition end   -- a condition that is named twice is looked up twice
        ) using oldest, most - listed;
    end if;
end $$;

create or replace function find_runs(wanted text, most bigint) returns setof text stable language plpgsql security definer
    set search_path from current set enable_seqscan = off set random_page_cost = 1.1 as $$
declare
    condition text := word_condition(wanted);
    indexed text := trigram_words(wanted);
    newest_count bigint := case when indexed = wanted then 1000 else 2000 end;
    oldest timestamptz;
    listed bigint;
begin
    select min(created) into oldest from
        (select created from runs where owner = nexi_owner() order by created desc limit newest_count) newest;
    return query execute format(
        'select run from (select run, created, words from runs where owner = nexi_owner() and created >= $1 offset 0) newest '
            'where %s order by created desc, run desc limit $2',
        condition
    ) using oldest, most;
    get diagnostics listed = row_count;
    if listed < most and indexed <> '' then
        return query execute format(
            'select run from (select run, created, words from runs where owner = nexi_owner() and created < $1 and %s %s) older '
                'where %s order by created + interval ''0'' desc, run desc limit $2',
            word_condition(indexed),
            case when indexed = wanted then '' else 'limit 2000' end,
            case when indexed = wanted then 'true' else condition end   -- a condition that is named twice is looked up twice
        ) using oldest, most - listed;
    end if;
end $$;
