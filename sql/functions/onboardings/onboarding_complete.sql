-- Onboarding review → completed, atomically: provisions the profiles of the catalog, makes the integrations that are to be connected,
-- publishes the first context revisions, activates the organization, lets its tasks be dispatched unless its owner stopped that, and
-- makes the onboarding chat immutable.
-- p_review_sha256: the digest of the review that was shown. p_documents: [{scope, documents}] as context_promote takes them,
-- made from the review's summary; null: only checks, before they are stored. p_providers: what integrations of the dispositions are
-- made of, where they are missing (see onboarding_integrations_create).
-- Locks: organization → onboarding → profiles → roots → … → chat → publications → sources.
-- Returns {onboarding}. Codes: 404 request_failed, 409 request_failed (not_permitted, suspended, stale, has_warnings,
-- reply_active, being_read), 409 state_conflict (a profile made by hand has a key of the catalog), 503 request_failed (no
-- catalog).
create or replace function app.onboarding_complete(
  p_organization_id uuid, p_review_sha256 text, p_allow_warnings boolean, p_documents jsonb,
  p_providers jsonb default '[]')
  returns jsonb
  language plpgsql security definer
as $$
declare
  v_tenant constant text := set_config('app.organization_id', p_organization_id::text, true);
  v_scope jsonb;
  v_reply_status text;
  o app.onboardings;
begin
  perform 1 from app.organizations where id = p_organization_id for no key update;
  o := app.onboarding_lock(p_organization_id, null, '{review}');
  perform app.onboarding_require_running(p_organization_id);
  -- Computed now, not read: a source may have turned out to be broken since.
  o.review := app.onboarding_review(o);
  if o.review ->> 'sha256' is distinct from p_review_sha256 then
    perform app.fail(409, 'request_failed', 'This is not the digest of the review: read it, and confirm its sha256',
      app.issue('reviewSha256', 'stale', 'is not the digest of the review'));
  end if;
  if o.review -> 'warnings' <> '[]' and p_allow_warnings is not true then
    perform app.fail(409, 'request_failed', 'The review has warnings: remedy them, or send allowWarnings',
      app.issue('allowWarnings', 'has_warnings', format('there are %s', jsonb_array_length(o.review -> 'warnings'))));
  end if;
  if exists (select 1 from app.context_sources where organization_id = p_organization_id and status = 'stored') then
    perform app.fail(409, 'request_failed', 'Sources are still being read: try again in a moment',
      app.issue('sources', 'being_read', 'are not all read yet'));
  end if;
  if p_documents is not null then
    perform app.agent_profiles_provision(p_organization_id,
      array(select jsonb_array_elements_text(o.setup -> 'departments')), null);
  end if;
  perform 1 from app.chats where organization_id = p_organization_id and id = o.chat_id for no key update;
  select status into v_reply_status from app.messages
    where organization_id = p_organization_id and id = app.chat_pending_reply(p_organization_id, o.chat_id);
  if v_reply_status = 'cancelling' then
    perform app.fail(409, 'request_failed', 'The reply in the onboarding chat is being cancelled: try again when its'
      || ' worker has reported, or its lease has ended',
      app.issue('chatId', 'reply_active', 'has a reply that is being cancelled, until its worker reports or its lease ends'));
  elsif v_reply_status is not null then
    perform app.fail(409, 'request_failed', 'A reply is in progress in the onboarding chat: wait for it, or cancel it',
      app.issue('chatId', 'reply_active', 'has a reply in progress'));
  end if;
  if p_documents is null then
    return jsonb_build_object('onboarding', app.onboarding_state(o));
  end if;

  for v_scope in select s from jsonb_array_elements(p_documents) s order by s ->> 'scope' loop
    perform app.context_promote(p_organization_id, v_scope ->> 'scope', (
        select revision from app.context_publications
          where organization_id = p_organization_id and scope = v_scope ->> 'scope'),
      v_scope -> 'documents', '{"kind": "owner"}');
  end loop;
  update app.organizations
    set status = 'active', onboarded_at = clock_timestamp(), name = o.setup ->> 'name',
      config = config || app.onboarding_config(o.setup), updated_at = clock_timestamp()
    where id = p_organization_id;
  o.status := 'completed';
  o := app.onboarding_write(o);
  perform app.onboarding_integrations_create(o, p_providers);
  perform app.dispatch_settle(p_organization_id);
  return jsonb_build_object('onboarding', app.onboarding_state(o));
end
$$;
