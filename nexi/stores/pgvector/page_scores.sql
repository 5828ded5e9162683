-- The pages of these chunks by their words, `words.py` puts in what stands in braces.
with found as materialized (
    select id, collection, length, terms || '{}' as terms, title_counts as aboves, text_counts as texts
    from bodies where id = any(%(bodies)s)
), hits as materialized (
    select id, length, rarity, %(text)s * texts[place] + %(head)s * aboves[place] as tf
    from found cross join {places} where place is not null
)
select id, {score} from hits group by id
