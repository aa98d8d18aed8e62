-- A value for the audit log, without anything that is named like a secret.
create or replace function app.audit_value(p_value jsonb)
  returns jsonb
  language plpgsql immutable
as $$
begin
  if jsonb_typeof(p_value) = 'object' then
    return (
      select coalesce(jsonb_object_agg(e.key, case
          when e.key ~* '(secret|password|passwd|passphrase|credential|api_?key|private_?key|authorization|cookie|token$|token_?hash)'
            then '"[left out]"'::jsonb
          -- Calling itself for every text and number would take most of the time.
          when jsonb_typeof(e.value) in ('object', 'array') then app.audit_value(e.value)
          else e.value end), '{}')
        from jsonb_each(p_value) e);
  elsif jsonb_typeof(p_value) = 'array' then
    return (
      select coalesce(jsonb_agg(case
          when jsonb_typeof(e.value) in ('object', 'array') then app.audit_value(e.value)
          else e.value end order by e.place), '[]')
        from jsonb_array_elements(p_value) with ordinality e(value, place));
  end if;
  return p_value;
end
$$;
