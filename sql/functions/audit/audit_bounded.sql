-- An object of at most 16 KiB for the audit log, without secrets. Of a larger one only its size is stored: callers shorten
-- their arguments (api/http/decision_arguments.ts), and redacting megabytes would take longer than any decision.
create or replace function app.audit_bounded(p_value jsonb)
  returns jsonb
  language plpgsql immutable
as $$
declare
  v_bytes constant integer := octet_length(p_value::text);
  v_kept jsonb := '{}';
begin
  if v_bytes <= 16384 then
    v_kept := app.audit_value(p_value);
  end if;
  -- A redacted value can be shorter than the text that replaces it.
  if v_bytes > 16384 or octet_length(v_kept::text) > 16384 then
    return jsonb_build_object('bytes', v_bytes);
  end if;
  return v_kept;
end
$$;
