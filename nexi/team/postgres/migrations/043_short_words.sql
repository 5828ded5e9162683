-- The newest rows are searched in their order, and never by the index of trigrams, which would look up all that have the words.
-- If one in a hundred of them fits, so do the older ones, and reading on in order soon finds enough; else the index finds the few,
-- and is not asked for words that all of the newest ten have, which are in too many.
-- A word without three letters or digits in a row has no trigrams. It is looked for among more of the newest rows, and among the
-- first that the index finds for the other words: to read all rows of a person takes the longer the more there are.
create function trigram_words(wanted text) returns text immutable language sql as $$
    select coalesce(string_agg(word, ' '), '') from unnest(string_to_array(wanted, ' ')) word where word ~ '[[:alnum:]]{3}'
$$;

create or replace function find_history(wanted text, most bigint) returns setof text stable language plpgsql security definer
    set search_path from current set enable_seqscan = off set random_page_cost = 1.1 as $$
declare
    condition text := word_condition(wanted);
    indexed text := trigram_words(wanted);
    newest_count bigint := case when indexed = wanted then 500 else 2000 end;
    oldest bigint;
    listed bigint;
    rare text;
begin
    select min(number) into oldest from
        (select number from history where owner = nexi_owner() order by number desc limit newest_count) newest;
    return query execute format(
        'select entry from (select number, entry, words from history where owner = nexi_owner() and number >= $1 '
            'order by number desc offset 0) newest where %s order by number desc limit $2',
        condition
    ) using oldest, most;
    get diagnostics listed = row_count;
    if listed >= most or indexed = '' then
        return;
    elsif indexed = wanted and listed * 100 >= newest_count then
        return query execute format(
            'select entry from (select number, entry, words from history where owner = nexi_owner() and number < $1 '
                'order by number desc offset 0) older where %s order by number desc limit $2',
            condition
        ) using oldest, most - listed;
    else
        select coalesce(string_agg(word, ' '), indexed) into rare from unnest(string_to_array(indexed, ' ')) word
            where not (select bool_and(position(word in words) > 0) from
                (select words from history where owner = nexi_owner() order by number desc limit 10) newest);
        return query execute format(
            'select entry from (select number, entry, words from history where owner = nexi_owner() and number < $1 and %s %s) older '
                'where %s order by number desc limit $2',
            word_condition(rare), case when indexed = wanted then 'offset 0' else 'limit 2000' end, condition
        ) using oldest, most - listed;
    end if;
end $$;

create or replace function find_runs(wanted text, most bigint) returns setof text stable language plpgsql security definer
    set search_path from current set enable_seqscan = off set random_page_cost = 1.1 as $$
declare
    condition text := word_condition(wanted);
    indexed text := trigram_words(wanted);
    newest_count bigint := case when indexed = wanted then 500 else 2000 end;
    oldest timestamptz;
    listed bigint;
    rare text;
begin
    select min(created) into oldest from
        (select created from runs where owner = nexi_owner() order by created desc limit newest_count) newest;
    return query execute format(
        'select run from (select run, created, words from runs where owner = nexi_owner() and created >= $1 '
            'order by created desc, run desc offset 0) newest where %s order by created desc, run desc limit $2',
        condition
    ) using oldest, most;
    get diagnostics listed = row_count;
    if listed >= most or indexed = '' then
        return;
    elsif indexed = wanted and listed * 100 >= newest_count then
        return query execute format(
            'select run from (select run, created, words from runs where owner = nexi_owner() and created < $1 '
                'order by created desc offset 0) older where %s order by created desc, run desc limit $2',
            condition
        ) using oldest, most - listed;
    else
        select coalesce(string_agg(word, ' '), indexed) into rare from unnest(string_to_array(indexed, ' ')) word
            where not (select bool_and(position(word in words) > 0) from
                (select words from runs where owner = nexi_owner() order by created desc limit 10) newest);
        return query execute format(
            'select run from (select run, created, words from runs where owner = nexi_owner() and created < $1 and %s %s) older '
                'where %s order by created desc, run desc limit $2',
            word_condition(rare), case when indexed = wanted then 'offset 0' else 'limit 2000' end, condition
        ) using oldest, most - listed;
    end if;
end $$;
