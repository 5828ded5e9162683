-- Chunks by their words, `words.py` puts in what stands in braces.
with found as materialized (
    select id, body, collection, length, terms || '{}' as terms,  -- which unpacks it, once
        head_counts as aboves, text_counts as texts
    from (select * from {chunks} {scope} offset 0) matching  -- by the index of terms
    order by id desc limit %(most)s
), hits as materialized (
    select id, body, length, rarity, %(text)s * texts[place] + %(head)s * aboves[place] as tf
    from found cross join {places} where place is not null
)
select id, body, {score} as score from hits group by id, body order by score desc, id limit %(wide)s
