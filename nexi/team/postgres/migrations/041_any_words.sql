-- A search for several words finds what has all of them, in any order and place. Each word is a condition of its own, so that the
-- index of trigrams is asked for all of them.
create function word_condition(wanted text) returns text immutable language sql as $$
    select coalesce(
        string_agg(
            format('words like %L', '%' || replace(replace(replace(word, '\', '\\'), '%', '\%'), '_', '\_') || '%'), ' and '
        ),
        'true'
    )
    from unnest(string_to_array(wanted, ' ')) word
$$;

create or replace function find_history(wanted text, most bigint) returns setof text stable language plpgsql security definer
    set search_path from current set enable_seqscan = off as $$
declare
    condition text := word_condition(wanted);
    oldest bigint;
    listed bigint;
begin
    select min(number) into oldest from
        (select number from history where owner = nexi_owner() order by number desc limit 1000) newest;
    return query execute format(
        'select entry from history where owner = nexi_owner() and number >= $1 and %s order by number desc limit $2', condition
    ) using oldest, most;
    get diagnostics listed = row_count;
    if listed < most then
        return query execute format(
            'select entry from history where owner = nexi_owner() and number < $1 and %s order by number + 0 desc limit $2',
            condition
        ) using oldest, most - listed;
    end if;
end $$;

create or replace function find_runs(wanted text, most bigint) returns setof text stable language plpgsql security definer
    set search_path from current set enable_seqscan = off as $$
declare
    condition text := word_condition(wanted);
    oldest timestamptz;
    listed bigint;
begin
    select min(created) into oldest from
        (select created from runs where owner = nexi_owner() order by created desc limit 1000) newest;
    return query execute format(
        'select run from runs where owner = nexi_owner() and created >= $1 and %s order by created desc, run desc limit $2',
        condition
    ) using oldest, most;
    get diagnostics listed = row_count;
    if listed < most then
        return query execute format(
            'select run from runs where owner = nexi_owner() and created < $1 and %s '
                'order by created + interval ''0'' desc, run desc limit $2',
            condition
        ) using oldest, most - listed;
    end if;
end $$;
