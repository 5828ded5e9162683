-- Model calls outside a run: the estimate is counted before the request is sent, so that a call that is cut is counted too.
create function take_call(who uuid, estimate bigint, is_new boolean) returns text volatile language plpgsql as $$
declare
    reached text;
begin
    perform pg_advisory_xact_lock(hashtextextended(who::text, 0));
    select case
        when is_new and runs_per_day <= coalesce(usage.runs, 0) then 'runs'
        when tokens_per_day <= coalesce(usage.tokens, 0) then 'tokens'
        when cost_per_day <= coalesce(usage.cost, 0) then 'cost'
    end into reached
    from quotas left join usage on usage.owner = person and day = (now() at time zone 'utc')::date
    where person = who;
    if reached is null then
        insert into usage (owner, day, tokens) values (who, (now() at time zone 'utc')::date, estimate)
            on conflict (owner, day) do update set tokens = usage.tokens + excluded.tokens;
    end if;
    return reached;
end $$;

create function settle_call(who uuid, difference bigint, paid double precision) returns void volatile language sql as $$
    insert into usage (owner, day, tokens, cost)
        values (who, (now() at time zone 'utc')::date, greatest(difference, 0), paid)
        on conflict (owner, day) do update
        set tokens = greatest(usage.tokens + difference, 0), cost = usage.cost + excluded.cost
$$;
