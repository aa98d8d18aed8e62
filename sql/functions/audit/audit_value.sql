-- A value as the audit log keeps it: texts cut to p_length characters, lists and objects to p_length members, nothing below
-- six levels, and without what is named like a secret.
create or replace function app.audit_value(p_value jsonb, p_length integer, p_depth integer default 0)
  returns jsonb
  language plpgsql immutable
  set search_path = pg_catalog, pg_temp
as $$
declare
  v_text text;
begin
  if jsonb_typeof(p_value) = 'string' then
    v_text := p_value #>> '{}';
    return case when length(v_text) > p_length then to_jsonb(left(v_text, p_length) || '…') else p_value end;
  elsif jsonb_typeof(p_value) in ('object', 'array') and p_depth >= 6 then
    return '"…"';
  elsif jsonb_typeof(p_value) = 'object' then
    return (
      select coalesce(jsonb_object_agg(left(e.key, 100), case
          when e.key ~* '(secret|password|passwd|passphrase|credential|api_?key|private_?key|authorization|cookie|token$|token_?hash)'
            then '"[left out]"'::jsonb
          else app.audit_value(e.value, p_length, p_depth + 1) end), '{}')
        from (select m.key, m.value from jsonb_each(p_value) m order by m.key limit p_length) e);
  elsif jsonb_typeof(p_value) = 'array' then
    return (
      select coalesce(jsonb_agg(app.audit_value(e.value, p_length, p_depth + 1) order by e.place), '[]')
        from (select m.value, m.place from jsonb_array_elements(p_value) with ordinality m(value, place) limit p_length) e);
  end if;
  return p_value;
end
$$;

alter function app.audit_value owner to runner_scoped;
revoke all on function app.audit_value from public;
