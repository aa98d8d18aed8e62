-- What is wrong with one answer to one pending part (docs/interface.md 2.6.2), as issues; an empty array if nothing is.
-- p_answer: {value | deferred: true | approved}. A deferral is never an approval, and neither is a value.
create or replace function app.answer_issues(p_path text, p_part jsonb, p_answer jsonb, p_onboarding boolean)
  returns jsonb
  language plpgsql immutable
as $$
declare
  v_value jsonb := p_answer -> 'value';
  v_values jsonb := case jsonb_typeof(p_answer -> 'value') when 'array' then p_answer -> 'value'
    else jsonb_build_array(p_answer -> 'value') end;
  -- A legacy question has no options: any text is an answer.
  v_legacy boolean := coalesce(jsonb_array_length(p_part -> 'options'), 0) = 0;
  v_deferred boolean := coalesce((p_answer ->> 'deferred')::boolean, false);
begin
  if p_part ->> 'kind' <> 'question' then
    if not p_answer ? 'approved' or p_answer ? 'value' or v_deferred then
      return app.issue(p_path, 'approval_required', 'needs approved: true or false, and nothing else');
    end if;
    return '[]';
  end if;
  if p_answer ? 'approved' then
    return app.issue(p_path, 'not_an_approval', 'a question is answered by value or deferred');
  end if;
  if v_deferred = (p_answer ? 'value') then
    return app.issue(p_path, 'value_or_deferral', 'needs either value or deferred: true');
  end if;
  if v_deferred then
    return case when v_legacy and p_onboarding
      then app.issue(p_path, 'not_deferrable', 'this question cannot be deferred in the onboarding chat') else '[]' end;
  end if;
  if jsonb_typeof(v_value) = 'array'
     and (v_legacy or not coalesce((p_part ->> 'allowMultiple')::boolean, false)) then
    return app.issue(p_path || '.value', 'one_value', 'this question takes one value');
  end if;
  if jsonb_array_length(v_values) = 0 or exists (
    select 1 from jsonb_array_elements(v_values) v where jsonb_typeof(v) <> 'string' or btrim(v #>> '{}') = '') then
    return app.issue(p_path || '.value', 'empty', 'must be text');
  end if;
  if (select count(distinct v) from jsonb_array_elements(v_values) v) < jsonb_array_length(v_values) then
    return app.issue(p_path || '.value', 'doubled', 'names an option twice');
  end if;
  if not v_legacy and not coalesce((p_part ->> 'allowFreeText')::boolean, false)
     and not v_values <@ (p_part -> 'options') then
    return app.issue(p_path || '.value', 'not_an_option', 'must be one of the options');
  end if;
  return '[]';
end
$$;
