-- An object of at most 16 KiB for the audit log: cut harder until it fits.
create or replace function app.audit_bounded(p_value jsonb)
  returns jsonb
  language plpgsql immutable
  set search_path = pg_catalog, pg_temp
as $$
declare
  v_length integer;
  v_kept jsonb;
begin
  foreach v_length in array array[500, 100, 20] loop
    v_kept := app.audit_value(coalesce(p_value, '{}'), v_length);
    if octet_length(v_kept::text) <= 16384 then
      return v_kept;
    end if;
  end loop;
  return jsonb_build_object('bytes', octet_length(p_value::text));
end
$$;

alter function app.audit_bounded owner to runner_scoped;
revoke all on function app.audit_bounded from public;
