-- Parts as they are stored: each has an id. A part without one gets the id of the earlier part of the same kind at its place,
-- so that ids are stable across revisions. Codes: 400 validation_failed (a duplicate id; more than 1 MiB).
create or replace function app.message_parts(p_path text, p_old jsonb, p_new jsonb)
  returns jsonb
  language plpgsql
as $$
declare
  v_parts jsonb;
begin
  select coalesce(jsonb_agg(case when n.part ? 'id' then n.part else jsonb_build_object('id',
        case when o.part ->> 'kind' = n.part ->> 'kind'
               and not p_new @> jsonb_build_array(jsonb_build_object('id', o.part -> 'id'))
          then o.part ->> 'id' else app.uuid_v7()::text end) || n.part end
      order by n.place), '[]')
    into v_parts
    from jsonb_array_elements(p_new) with ordinality n(part, place)
    left join jsonb_array_elements(p_old) with ordinality o(part, place) on o.place = n.place;
  if (select count(distinct i ->> 'id') from jsonb_array_elements(v_parts) i) < jsonb_array_length(v_parts) then
    perform app.fail(400, 'validation_failed', 'Two parts have the same id',
      app.issue(p_path, 'duplicate_id', 'ids of parts are unique in their message'));
  end if;
  if octet_length(v_parts::text) > 1048576 then
    perform app.fail(400, 'validation_failed', 'A message holds at most 1 MiB',
      app.issue(p_path, 'too_large', 'the message would be larger than 1 MiB'));
  end if;
  return v_parts;
end
$$;
