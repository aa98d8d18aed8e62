-- Action (none) → awaiting_approval | approved, proposed by an execution through the gateway: an execute run, or a chat turn.
-- p_kind: which gateway. p_proposal: {invocationId, bodySha256, tool, summary, risk?, arguments, argumentsSha256, files?, repeat?,
-- retryOf?, equalsBy?, timeoutMs}, validated in shape; files: [{argument, fileId?, name, contentType, sizeBytes, sha256, storageKey}],
-- those with a fileId stored ones of the invocation. risk: of a push; of a tool it raises the risk of the tool. equalsBy: what
-- proposals equal by in place of arguments and files: of a push, its branches and commits, however they were packed.
-- p_approval_days: until it expires if nobody decides.
-- An invocation that was called before returns its action. A proposal that equals one that is open or succeeded (of the same task or
-- chat, integration, tool, arguments and files) returns that one, an open one first, unless it says repeat, which always needs an
-- approval. Both are found under the lock of the root or of the turn's request, so that any number at once make one.
-- Returns {action, made}; made false: it was there.
-- Locks: integration (shared) → root → run request → files (shared) → the organization's actions of the day → inbox item.
-- Codes: 400 validation_failed (retryOf), 401 agent_unauthorized, 404 not_found | tool_not_found, 409 daily_limit_reached | state_conflict
-- (verify_read_only, wrong_mode, differs, stale_epoch, or why it is not available).
create or replace function app.action_propose(
  p_organization_id uuid, p_token_hash text, p_integration_id uuid, p_kind text, p_proposal jsonb, p_approval_days integer)
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  v_action_kind constant text := case p_kind when 'git' then 'git_push' else 'provider_write' end;
  v_repeat constant boolean := coalesce((p_proposal ->> 'repeat')::boolean, false);
  v_run_id uuid;
  v_task_id uuid;
  v_reason text;
  v_hash text;
  v_risk text;
  v_approval boolean;
  v_made boolean := false;
  v_held integer;
  v_now timestamptz;
  o app.organizations;
  i app.integrations;
  c app.integration_connections;
  p app.agent_profiles;
  t app.integration_tools;
  r app.run_requests;
  n app.action_invocations;
  a app.actions;
begin
  select u.id, u.task_id into v_run_id, v_task_id
    from app.integration_gateway_capabilities g
    join app.runs u on u.organization_id = g.organization_id and u.id = g.run_id
    where g.organization_id = p_organization_id and g.token_hash = p_token_hash;
  -- A change of the connection finds the actions that were proposed for it: it waits for this one.
  select * into i from app.integrations where organization_id = p_organization_id and id = p_integration_id for share;
  if v_task_id is not null then
    perform app.task_roots_lock(p_organization_id, array[v_task_id], false);
  end if;
  -- A capability that is used, and the end of its lease, exclude each other.
  r := app.run_request_lock(p_organization_id, v_run_id);
  perform app.integration_capability_check(p_organization_id, p_token_hash, p_integration_id, p_kind);
  if r.mode <> 'execute' then
    perform app.fail(409, 'state_conflict', format('A run of mode %s proposes nothing', r.mode),
      app.issue('tool', case r.mode when 'verify' then 'verify_read_only' else 'wrong_mode' end,
        format('the run is of mode %s', r.mode)));
  end if;
  n := app.action_invocation_find(p_organization_id, v_run_id, i.id, p_proposal ->> 'invocationId', p_proposal ->> 'bodySha256');
  if n.action_id is not null then
    select * into a from app.actions where organization_id = p_organization_id and id = n.action_id;
    return jsonb_build_object('action', app.action_record(a), 'made', false);
  elsif n.lease_id is not null then
    perform app.fail(409, 'state_conflict', 'This invocation read, and the tool writes by now',
      app.issue('invocationId', 'differs', 'call the tool under another name'));
  end if;

  select * into o from app.organizations where id = p_organization_id;
  select * into c from app.integration_connections where organization_id = p_organization_id and integration_id = i.id;
  select * into p from app.agent_profiles where organization_id = p_organization_id and id = r.agent_profile_id;
  if v_action_kind = 'provider_write' then
    select * into t from app.integration_tools
      where organization_id = p_organization_id and integration_id = i.id and key = p_proposal ->> 'tool';
    if not found or not t.enabled then
      perform app.fail(404, 'tool_not_found', 'The integration has no such tool for this execution');
    end if;
  end if;
  v_reason := app.action_unavailable(i, c, p, t, v_action_kind, o.constraints -> 'allowedIntegrations');
  if v_reason is not null then
    perform app.fail(409, 'state_conflict', 'The tool is not available to this execution',
      app.issue('tool', v_reason, format('is not available (%s)', v_reason)));
  end if;
  if p_proposal ->> 'retryOf' is not null and not exists (
      select 1 from app.actions b
        where b.organization_id = p_organization_id and b.id = (p_proposal ->> 'retryOf')::uuid and b.integration_id = i.id
          and (b.task_id = r.task_id or b.chat_id = r.chat_id)
          and b.status in ('rejected', 'expired', 'cancelled', 'failed', 'not_executed')) then
    perform app.fail(400, 'validation_failed', 'There is nothing to try again',
      app.issue('retryOf', 'not_over', 'names no action of this task or chat that is over without success'));
  end if;

  -- Whoever removes files waits, and finds the action that holds them.
  perform 1
    from app.action_invocation_files f
    join jsonb_to_recordset(p_proposal -> 'files') g("fileId" uuid, "storageKey" text)
      on f.id = g."fileId" and f.storage_key = g."storageKey"
    where f.organization_id = p_organization_id and f.run_id = v_run_id and f.integration_id = i.id
      and f.invocation_id = p_proposal ->> 'invocationId'
    order by f.id
    for key share of f;
  get diagnostics v_held = row_count;
  if v_held < jsonb_array_length(jsonb_path_query_array(p_proposal, '$.files[*].fileId')) then
    perform app.fail(404, 'not_found', 'This invocation has no stored file with this id');
  end if;
  v_hash := encode(sha256(convert_to(concat_ws(E'\n', coalesce(r.task_id, r.chat_id), i.id, p_proposal ->> 'tool',
    coalesce(p_proposal ->> 'equalsBy', concat_ws(E'\n', p_proposal ->> 'argumentsSha256', (
      select string_agg(f ->> 'argument' || ' ' || (f ->> 'sha256'), E'\n' order by f ->> 'argument')
        from jsonb_array_elements(p_proposal -> 'files') f)))), 'UTF8')), 'hex');
  if not v_repeat then
    select * into a from app.actions b
      where b.organization_id = p_organization_id and b.proposal_sha256 = v_hash
        and b.status in ('awaiting_approval', 'approved', 'executing', 'unknown', 'succeeded')
      order by b.status = 'succeeded', b.created_at, b.id limit 1;
  end if;
  if a.id is null then
    -- Proposals of other tasks count too.
    perform pg_advisory_xact_lock(hashtextextended('actions:' || p_organization_id, 0));
    if app.actions_of_day(p_organization_id, o.config ->> 'timezone', clock_timestamp())
        >= (o.config #>> '{limits,maxDailyActions}')::integer then
      perform app.fail(409, 'daily_limit_reached', format('The organization proposes at most %s actions a day',
        o.config #>> '{limits,maxDailyActions}'));
    end if;
    v_now := clock_timestamp();
    select k.risk into v_risk
      from unnest(array['low', 'external', 'high']) with ordinality k(risk, place)
      where k.risk in (t.risk, p_proposal ->> 'risk') order by k.place desc limit 1;
    v_approval := v_repeat or coalesce(o.constraints -> 'approvalRequiredForRisk' ? v_risk, false);
    insert into app.actions (organization_id, integration_id, integration_key, provider, agent_profile_id, task_id, run_id, chat_id,
        message_id, invocation_id, retry_of, kind, tool, tool_digest, connection_revision, subject_hash, summary, risk, arguments,
        arguments_schema, arguments_sha256, proposal_sha256, timeout_ms, requires_approval, status, due_at, expires_at, created_at,
        updated_at)
      values (p_organization_id, i.id, i.key, i.provider, p.id, r.task_id, v_run_id, r.chat_id, r.message_id,
        p_proposal ->> 'invocationId', (p_proposal ->> 'retryOf')::uuid, v_action_kind, p_proposal ->> 'tool', t.digest,
        i.connection_revision, c.subject_hash, p_proposal ->> 'summary', v_risk, p_proposal -> 'arguments',
        case when t.input_schema @? '$.** ? (@.writeOnly == true || @.format == "password")' then t.input_schema end,
        p_proposal ->> 'argumentsSha256', v_hash, (p_proposal ->> 'timeoutMs')::integer, v_approval,
        case when v_approval then 'awaiting_approval' else 'approved' end,
        case when not v_approval then v_now end, v_now + make_interval(days => p_approval_days), v_now, v_now)
      returning * into a;
    insert into app.action_files (organization_id, action_id, argument, name, content_type, size_bytes, sha256, storage_key)
      select p_organization_id, a.id, f ->> 'argument', f ->> 'name', f ->> 'contentType', (f ->> 'sizeBytes')::bigint,
          f ->> 'sha256', f ->> 'storageKey'
        from jsonb_array_elements(p_proposal -> 'files') f;
    if v_approval then
      perform app.action_item_open(a);
    end if;
    v_made := true;
  end if;
  insert into app.action_invocations (organization_id, run_id, integration_id, invocation_id, body_sha256, action_id)
    values (p_organization_id, v_run_id, i.id, p_proposal ->> 'invocationId', p_proposal ->> 'bodySha256', a.id)
    on conflict on constraint action_invocations_pkey do update set action_id = excluded.action_id;
  return jsonb_build_object('action', app.action_record(a), 'made', v_made);
end
$$;
