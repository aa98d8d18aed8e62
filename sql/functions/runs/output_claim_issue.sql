-- Compares what a caller claims of an output (p_claim, any of runId, uri, size and sha256 beside its path) with what is stored
-- (p_stored, as output_evidence returns it). Returns null, or the issue of the first field that differs. p_at: the path of the claim.
create or replace function app.output_claim_issue(p_claim jsonb, p_stored jsonb, p_at text)
  returns jsonb
  language plpgsql immutable
as $$
declare
  v_field text;
begin
  if p_stored is null then
    return jsonb_build_object('path', p_at || '.path', 'code', 'not_stored',
      'message', 'no output with this path was stored for the run');
  end if;
  foreach v_field in array array['runId', 'uri', 'size', 'sha256'] loop
    if p_claim -> v_field <> p_stored -> v_field then
      return jsonb_build_object('path', p_at || '.' || v_field, 'code', 'differs_from_stored',
        'message', format('%s is stored', p_stored ->> v_field));
    end if;
  end loop;
  return null;
end
$$;
