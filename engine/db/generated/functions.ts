// Made by "npm run generate" from the catalog of a migrated database; a test fails when they differ.
import type { Signature } from '../sql_types.ts';

/** The functions that logins and operators call. */
export const functions = {
  action_approve: {
    required: {
      organizationId: 'uuid',
      actionId: 'uuid',
      expectedVersion: 'int4',
      argumentsSha256: 'text',
      note: 'text',
      actor: 'jsonb',
    },
  },
  action_begin: {
    required: {
      organizationId: 'uuid',
      actionId: 'uuid',
      leaseId: 'uuid',
      seconds: 'int4',
      files: 'jsonb',
      approvalDays: 'int4',
    },
    optional: { obstacle: 'text' },
  },
  action_file_begin: {
    required: {
      organizationId: 'uuid',
      tokenHash: 'text',
      integrationId: 'uuid',
      invocationId: 'text',
      fileId: 'uuid',
      file: 'jsonb',
      uploadKey: 'text',
      seconds: 'int4',
    },
  },
  action_file_store: {
    required: {
      organizationId: 'uuid',
      tokenHash: 'text',
      integrationId: 'uuid',
      invocationId: 'text',
      fileId: 'uuid',
      begun: 'bool',
      file: 'jsonb',
      storageKey: 'text',
    },
  },
  action_files_find: {
    required: {
      organizationId: 'uuid',
      tokenHash: 'text',
      integrationId: 'uuid',
      invocationId: 'text',
      fileIds: 'uuid[]',
    },
  },
  action_finish: {
    required: { organizationId: 'uuid', actionId: 'uuid', leaseId: 'uuid', outcome: 'jsonb' },
  },
  action_invocation_begin: {
    required: {
      organizationId: 'uuid',
      tokenHash: 'text',
      integrationId: 'uuid',
      invocationId: 'text',
      bodySha256: 'text',
      tool: 'text',
      leaseId: 'uuid',
      seconds: 'int4',
    },
  },
  action_invocation_finish: {
    required: {
      organizationId: 'uuid',
      runId: 'uuid',
      integrationId: 'uuid',
      invocationId: 'text',
      leaseId: 'uuid',
      outcome: 'jsonb',
    },
  },
  action_invocation_read: {
    required: {
      organizationId: 'uuid',
      tokenHash: 'text',
      integrationId: 'uuid',
      invocationId: 'text',
      leaseId: 'uuid',
    },
  },
  action_invocations_due: {
    required: { organizations: 'int4', rows: 'int4' },
    optional: { after: 'uuid' },
    returnsSet: true,
  },
  action_invocations_remove: {
    required: { organizationId: 'uuid', runId: 'uuid', rows: 'int4' },
    optional: { removed: 'text[]' },
  },
  action_lease: {
    required: {
      organizationId: 'uuid',
      actionId: 'uuid',
      leaseId: 'uuid',
      seconds: 'int4',
      pushSeconds: 'int4',
      lookUpSeconds: 'int4',
      approvalDays: 'int4',
      fileBytesPerSecond: 'int4',
    },
  },
  action_objects_named: {
    required: { organizationId: 'uuid', keys: 'text[]' },
  },
  action_propose: {
    required: {
      organizationId: 'uuid',
      tokenHash: 'text',
      integrationId: 'uuid',
      kind: 'text',
      proposal: 'jsonb',
      approvalDays: 'int4',
    },
  },
  action_reconcile: {
    required: { organizationId: 'uuid', actionId: 'uuid', outcome: 'text', note: 'text', actor: 'jsonb' },
  },
  action_reject: {
    required: { organizationId: 'uuid', actionId: 'uuid', reason: 'text', actor: 'jsonb' },
  },
  action_release: {
    required: { organizationId: 'uuid', actionId: 'uuid', leaseId: 'uuid', seconds: 'int4' },
  },
  actions_due: {
    required: { organizations: 'int4', rows: 'int4' },
    optional: { after: 'uuid' },
    returnsSet: true,
  },
  actions_expire: {
    required: { organizationId: 'uuid', actionIds: 'uuid[]' },
  },
  admin_catalog_publish: {
    required: { revision: 'text', catalog: 'jsonb', admin: 'text' },
    optional: { requestId: 'text' },
  },
  admin_dispatch_resume: {
    required: { organizationId: 'uuid', admin: 'text' },
    optional: { requestId: 'text' },
  },
  admin_dispatch_stop: {
    required: { organizationId: 'uuid', admin: 'text' },
    optional: { requestId: 'text' },
  },
  admin_lease_expire: {
    required: {
      organizationId: 'uuid',
      runRequestId: 'uuid',
      admin: 'text',
      maxAttempts: 'int4',
      backoffSeconds: 'int4',
      backoffMaxSeconds: 'int4',
    },
    optional: { requestId: 'text' },
  },
  admin_organization_reactivate: {
    required: { organizationId: 'uuid', admin: 'text' },
    optional: { requestId: 'text' },
  },
  admin_organization_suspend: {
    required: { organizationId: 'uuid', admin: 'text' },
    optional: { requestId: 'text' },
  },
  admin_run_request_requeue: {
    required: { organizationId: 'uuid', runRequestId: 'uuid', admin: 'text' },
    optional: { requestId: 'text' },
  },
  admin_schedule_pause: {
    required: { organizationId: 'uuid', scheduleRef: 'text', admin: 'text' },
    optional: { requestId: 'text' },
  },
  admin_schedule_resume: {
    required: { organizationId: 'uuid', scheduleRef: 'text', nextRunAt: 'timestamptz', version: 'int4', admin: 'text' },
    optional: { requestId: 'text' },
  },
  admin_task_cancel: {
    required: { organizationId: 'uuid', taskRef: 'text', admin: 'text' },
    optional: { requestId: 'text' },
  },
  admin_task_retry: {
    required: { organizationId: 'uuid', taskRef: 'text', admin: 'text' },
    optional: { requestId: 'text' },
  },
  agent_catalog_publish_if_none: {
    required: { revision: 'text', catalog: 'jsonb' },
  },
  agent_profile_create: {
    required: { organizationId: 'uuid', fields: 'jsonb' },
  },
  agent_profile_delete: {
    required: { organizationId: 'uuid', agentProfileId: 'uuid' },
  },
  agent_profile_update: {
    required: { organizationId: 'uuid', agentProfileId: 'uuid', patch: 'jsonb' },
  },
  agent_profiles_provision: {
    required: { organizationId: 'uuid', departments: 'text[]', revision: 'text' },
    optional: { kinds: 'text[]' },
  },
  analyst_grant: {
    required: { login: 'text', organizationIds: 'uuid[]', all: 'bool', fresh: 'bool' },
  },
  analyst_revoke: {
    required: { login: 'text' },
  },
  analysts_list: {
    required: {},
  },
  audit_append: {
    required: {
      organizationId: 'uuid',
      actorKind: 'text',
      actor: 'text',
      action: 'text',
      subjectKind: 'text',
      subjectId: 'text',
      arguments: 'jsonb',
    },
    optional: { response: 'jsonb', requestId: 'text', result: 'jsonb' },
  },
  capability_check: {
    required: { organizationId: 'uuid', tokenHash: 'text' },
  },
  chat_attachment_put: {
    required: {
      organizationId: 'uuid',
      chatId: 'uuid',
      attachmentId: 'uuid',
      fileName: 'text',
      mediaType: 'text',
      sizeBytes: 'int8',
      sha256: 'text',
      storageKey: 'text',
      actor: 'jsonb',
    },
  },
  chat_create: {
    required: { organizationId: 'uuid', body: 'jsonb', actor: 'jsonb' },
  },
  chat_delete: {
    required: { organizationId: 'uuid', chatId: 'uuid', actor: 'jsonb' },
  },
  chat_heads: {
    required: { organizationId: 'uuid', chatIds: 'uuid[]', messageIds: 'uuid[]', revisions: 'int4[]' },
  },
  chat_purge: {
    required: { organizationId: 'uuid', chatId: 'uuid', limit: 'int4', forget: 'bool' },
  },
  chat_turn_end_overdue: {
    required: { organizationId: 'uuid', runRequestId: 'uuid', startSeconds: 'int4' },
  },
  chat_update: {
    required: { organizationId: 'uuid', chatId: 'uuid', patch: 'jsonb', actor: 'jsonb' },
  },
  chats_expired: {
    required: { organizations: 'int4', rows: 'int4' },
    optional: { after: 'uuid' },
    returnsSet: true,
  },
  chats_search: {
    required: {
      organizationId: 'uuid',
      search: 'text',
      status: 'text',
      lastMessageAtUs: 'int8',
      id: 'uuid',
      inclusive: 'bool',
      backward: 'bool',
      limit: 'int4',
    },
    returnsSet: true,
  },
  context_health_due: {
    required: { hours: 'int4', after: 'uuid', limit: 'int4' },
    returnsSet: true,
  },
  context_health_record: {
    required: { organizationId: 'uuid', report: 'jsonb' },
  },
  context_promote: {
    required: { organizationId: 'uuid', scope: 'text', baseRevision: 'int4', documents: 'jsonb', actor: 'jsonb' },
    optional: { taskRef: 'text' },
  },
  context_source_mark: {
    required: { organizationId: 'uuid', sourceId: 'uuid', status: 'text', error: 'jsonb' },
  },
  context_source_retain: {
    required: { organizationId: 'uuid', source: 'jsonb', actor: 'jsonb' },
  },
  currency_rate_read: {
    required: { currency: 'text', day: 'date' },
    optional: { base: 'text' },
  },
  currency_rates_claim: {
    required: { seconds: 'int4' },
  },
  currency_rates_fail: {
    required: {
      fence: 'int4',
      errorCode: 'text',
      notBefore: 'timestamptz',
      firstSeconds: 'int4',
      longestSeconds: 'int4',
    },
  },
  currency_rates_store: {
    required: { fence: 'int4', days: 'jsonb', isHistory: 'bool' },
    optional: { dueAt: 'timestamptz' },
  },
  dispatch_due: {
    required: {},
    optional: { organizations: 'int4', rows: 'int4', after: 'jsonb', chatStartSeconds: 'int4' },
    returnsSet: true,
  },
  dispatch_totals: {
    required: {},
  },
  human_inbox_acknowledge: {
    required: { organizationId: 'uuid', inboxItemId: 'uuid' },
  },
  human_inbox_item_create: {
    required: { organizationId: 'uuid', taskRef: 'text', item: 'jsonb', actor: 'jsonb' },
  },
  human_inbox_open_counts: {
    required: {},
  },
  human_inbox_respond: {
    required: { organizationId: 'uuid', inboxItemId: 'uuid', response: 'text', note: 'text' },
  },
  idempotency_begin: {
    required: { organizationId: 'uuid', caller: 'text', method: 'text', path: 'text', key: 'text', bodyHash: 'text' },
    optional: { claimId: 'uuid', claimSeconds: 'int4' },
  },
  idempotency_finish: {
    required: {
      organizationId: 'uuid',
      caller: 'text',
      method: 'text',
      path: 'text',
      key: 'text',
      status: 'int4',
      body: 'jsonb',
    },
    optional: { claimId: 'uuid' },
  },
  idempotency_keys_clean: {
    required: { organizations: 'int4', rows: 'int4' },
    optional: { after: 'uuid' },
  },
  idempotency_release: {
    required: { organizationId: 'uuid', caller: 'text', method: 'text', path: 'text', key: 'text', claimId: 'uuid' },
  },
  idempotency_renew: {
    required: {
      organizationId: 'uuid',
      caller: 'text',
      method: 'text',
      path: 'text',
      key: 'text',
      claimId: 'uuid',
      claimSeconds: 'int4',
    },
  },
  insight_compaction_claim: {
    required: {
      organizationId: 'uuid',
      sourceId: 'uuid',
      month: 'text',
      adapters: 'jsonb',
      limits: 'jsonb',
      seconds: 'int4',
    },
  },
  insight_compaction_commit: {
    required: {
      organizationId: 'uuid',
      sourceId: 'uuid',
      month: 'text',
      compactionId: 'uuid',
      fence: 'int8',
      result: 'jsonb',
    },
  },
  insight_compaction_end: {
    required: { organizationId: 'uuid', sourceId: 'uuid', month: 'text', compactionId: 'uuid', fence: 'int8' },
    optional: { error: 'jsonb' },
  },
  insight_compactions_due: {
    required: { segments: 'int4', organizations: 'int4', rows: 'int4' },
    optional: { after: 'uuid' },
  },
  insight_expiries_due: {
    required: { hours: 'int4', organizations: 'int4' },
    optional: { after: 'uuid' },
    returnsSet: true,
  },
  insight_objects_named: {
    required: { organizationId: 'uuid', keys: 'text[]' },
  },
  insight_pseudonym_key_read: {
    required: { organizationId: 'uuid' },
    optional: { sealed: 'jsonb' },
  },
  insight_refresh: {
    required: { organizationId: 'uuid', connectorKey: 'text', providers: 'jsonb', actor: 'jsonb' },
  },
  insight_segments_expired: {
    required: { organizationId: 'uuid', hours: 'int4', rows: 'int4' },
    optional: { after: 'jsonb' },
  },
  insight_segments_read: {
    required: { organizationId: 'uuid', sourceId: 'uuid' },
    optional: { from: 'text', to: 'text', revision: 'int8' },
  },
  insight_segments_remove: {
    required: { organizationId: 'uuid', hours: 'int4', keys: 'text[]' },
  },
  insight_sources_put: {
    required: { organizationId: 'uuid', unitId: 'uuid', fence: 'int8', sources: 'jsonb', nextSeconds: 'int4' },
  },
  insight_staged_read: {
    required: { organizationId: 'uuid', sourceId: 'uuid' },
  },
  insight_sweep_begin: {
    required: { organizationId: 'uuid' },
  },
  insight_sweeps_due: {
    required: { organizations: 'int4' },
    optional: { after: 'uuid' },
    returnsSet: true,
  },
  insight_totals: {
    required: {},
  },
  insight_unit_claim: {
    required: { organizationId: 'uuid', integrationId: 'uuid', adapters: 'jsonb', active: 'int4', seconds: 'int4' },
  },
  insight_unit_commit: {
    required: { organizationId: 'uuid', unitId: 'uuid', fence: 'int8', result: 'jsonb' },
  },
  insight_unit_fail: {
    required: {
      organizationId: 'uuid',
      unitId: 'uuid',
      fence: 'int8',
      error: 'jsonb',
      retryNotBefore: 'timestamptz',
      restart: 'jsonb',
    },
  },
  insight_unit_release: {
    required: { organizationId: 'uuid', unitId: 'uuid', fence: 'int8' },
  },
  insight_units_clean: {
    required: { rows: 'int4' },
  },
  insights_due: {
    required: { organizations: 'int4', rows: 'int4' },
    optional: { after: 'uuid' },
    returnsSet: true,
  },
  integration_agent_get: {
    required: { organizationId: 'uuid', actor: 'jsonb', authorizationEpoch: 'int4', integrationRef: 'text' },
  },
  integration_capability_check: {
    required: { organizationId: 'uuid', tokenHash: 'text', integrationId: 'uuid', kind: 'text' },
  },
  integration_capability_find: {
    required: { tokenHash: 'text' },
  },
  integration_connect: {
    required: {
      organizationId: 'uuid',
      integrationRef: 'text',
      revision: 'int4',
      nextRevision: 'int4',
      connection: 'jsonb',
      secrets: 'jsonb',
      replaceAccount: 'bool',
    },
  },
  integration_connection_plan: {
    required: { organizationId: 'uuid', integrationRef: 'text', connection: 'jsonb' },
  },
  integration_context_mapping_put: {
    required: { organizationId: 'uuid', integrationRef: 'text', mapping: 'jsonb' },
  },
  integration_context_repair_finish: {
    required: { organizationId: 'uuid', repairId: 'uuid', mapping: 'jsonb', reportRevision: 'int4' },
  },
  integration_create: {
    required: { organizationId: 'uuid', integration: 'jsonb' },
  },
  integration_delete: {
    required: { organizationId: 'uuid', integrationRef: 'text' },
  },
  integration_disconnect: {
    required: { organizationId: 'uuid', integrationRef: 'text' },
  },
  integration_discovery_record: {
    required: { organizationId: 'uuid', integrationRef: 'text', connectionRevision: 'int4', discovery: 'jsonb' },
    optional: { tools: 'jsonb' },
  },
  integration_flows_clean: {
    required: { rows: 'int4' },
  },
  integration_git_check: {
    required: { organizationId: 'uuid', tokenHash: 'text', integrationId: 'uuid' },
  },
  integration_grant_delete: {
    required: {
      organizationId: 'uuid',
      grantHash: 'text',
      connections: 'jsonb',
      revoked: 'bool',
      beganAt: 'timestamptz',
    },
  },
  integration_grant_read: {
    required: { organizationId: 'uuid', integrationRef: 'text' },
  },
  integration_health_mark: {
    required: {
      organizationId: 'uuid',
      integrationId: 'uuid',
      connectionRevision: 'int4',
      health: 'jsonb',
      checkSeconds: 'int4',
    },
  },
  integration_oauth_begin: {
    required: { organizationId: 'uuid', ticketHash: 'text', begin: 'jsonb' },
  },
  integration_oauth_complete: {
    required: {
      organizationId: 'uuid',
      integrationId: 'uuid',
      flowId: 'uuid',
      nextRevision: 'int4',
      connection: 'jsonb',
      secrets: 'jsonb',
    },
  },
  integration_oauth_consume: {
    required: { organizationId: 'uuid', flowId: 'uuid', provider: 'text', browserHash: 'text', starter: 'text' },
  },
  integration_oauth_end: {
    required: { organizationId: 'uuid', flowId: 'uuid', result: 'text' },
  },
  integration_oauth_find: {
    required: { kind: 'text', hash: 'text' },
  },
  integration_oauth_start: {
    required: { organizationId: 'uuid', integrationRef: 'text', flow: 'jsonb' },
  },
  integration_oauth_ticket: {
    required: { organizationId: 'uuid', ticketHash: 'text' },
  },
  integration_read: {
    required: { organizationId: 'uuid', integrationRef: 'text' },
  },
  integration_reauthorization_mark: {
    required: {
      organizationId: 'uuid',
      integrationId: 'uuid',
      connectionRevision: 'int4',
      tokenVersion: 'int4',
      reason: 'text',
    },
  },
  integration_refresh_lease: {
    required: {
      organizationId: 'uuid',
      integrationId: 'uuid',
      connectionRevision: 'int4',
      tokenVersion: 'int4',
      leaseId: 'uuid',
      seconds: 'int4',
    },
  },
  integration_resolve: {
    required: {
      organizationId: 'uuid',
      actor: 'jsonb',
      authorizationEpoch: 'int4',
      integrationRef: 'text',
      kind: 'text',
      tokenHash: 'text',
      runId: 'uuid',
      seconds: 'int4',
      gitProviders: 'jsonb',
    },
  },
  integration_scopes_note: {
    required: { organizationId: 'uuid', integrationId: 'uuid', connectionRevision: 'int4', scopes: 'jsonb' },
  },
  integration_secret_rewrap: {
    required: { organizationId: 'uuid', secret: 'jsonb', keyId: 'text', wrappedKey: 'text' },
  },
  integration_secrets_by_key: {
    required: {},
  },
  integration_secrets_read: {
    required: { organizationId: 'uuid', integrationId: 'uuid', connectionRevision: 'int4' },
  },
  integration_secrets_to_rewrap: {
    required: { keyIds: 'text[]', after: 'jsonb', limit: 'int4' },
  },
  integration_settings_put: {
    required: {
      organizationId: 'uuid',
      integrationRef: 'text',
      connectionRevision: 'int4',
      settings: 'jsonb',
      disconnect: 'bool',
      forgetTools: 'bool',
    },
  },
  integration_status_set: {
    required: { organizationId: 'uuid', integrationRef: 'text', status: 'text' },
  },
  integration_tokens_rotate: {
    required: {
      organizationId: 'uuid',
      integrationId: 'uuid',
      connectionRevision: 'int4',
      tokenVersion: 'int4',
      tokens: 'jsonb',
      secrets: 'jsonb',
    },
  },
  integration_tools_put: {
    required: { organizationId: 'uuid', integrationRef: 'text', change: 'jsonb' },
  },
  integration_update: {
    required: { organizationId: 'uuid', integrationRef: 'text', patch: 'jsonb' },
  },
  integrations_due: {
    required: { kind: 'text', organizations: 'int4', rows: 'int4' },
    optional: { after: 'uuid' },
    returnsSet: true,
  },
  integrations_for_agent: {
    required: {
      organizationId: 'uuid',
      actor: 'jsonb',
      authorizationEpoch: 'int4',
      key: 'text',
      inclusive: 'bool',
      backward: 'bool',
      limit: 'int4',
    },
  },
  integrations_list: {
    required: { organizationId: 'uuid', key: 'text', inclusive: 'bool', backward: 'bool', limit: 'int4' },
  },
  integrations_reconcile_read: {
    required: { organizationId: 'uuid' },
  },
  message_cancel: {
    required: { organizationId: 'uuid', chatId: 'uuid', messageId: 'uuid', actor: 'jsonb' },
  },
  message_chunks_due: {
    required: { organizations: 'int4', rows: 'int4' },
    optional: { after: 'uuid' },
    returnsSet: true,
  },
  message_chunks_fill: {
    required: { organizationId: 'uuid', messageId: 'uuid', limit: 'int4' },
  },
  message_chunks_postpone: {
    required: { organizationId: 'uuid', messageId: 'uuid' },
  },
  message_create: {
    required: { organizationId: 'uuid', chatId: 'uuid', body: 'jsonb', actor: 'jsonb' },
  },
  onboarding_complete: {
    required: { organizationId: 'uuid', reviewSha256: 'text', allowWarnings: 'bool', documents: 'jsonb' },
    optional: { providers: 'jsonb' },
  },
  onboarding_create: {
    required: {},
    optional: { organizationId: 'uuid', fields: 'jsonb', subject: 'text' },
  },
  onboarding_discard: {
    required: { organizationId: 'uuid' },
  },
  onboarding_disposition_put: {
    required: {
      organizationId: 'uuid',
      expectedGeneration: 'int4',
      integrationKey: 'text',
      disposition: 'text',
      departments: 'jsonb',
    },
  },
  onboarding_evidence_add: {
    required: { organizationId: 'uuid', generation: 'int4', source: 'jsonb' },
    optional: { actor: 'jsonb' },
  },
  onboarding_findings_add: {
    required: { organizationId: 'uuid', findings: 'jsonb', warnings: 'jsonb', actor: 'jsonb' },
  },
  onboarding_read: {
    required: { organizationId: 'uuid' },
  },
  onboarding_research_begin: {
    required: { organizationId: 'uuid', generation: 'int4' },
  },
  onboarding_research_finish: {
    required: { organizationId: 'uuid', generation: 'int4', outcome: 'jsonb' },
  },
  onboarding_research_retry: {
    required: { organizationId: 'uuid', expectedGeneration: 'int4' },
  },
  onboarding_setup_update: {
    required: { organizationId: 'uuid', expectedGeneration: 'int4', patch: 'jsonb' },
  },
  onboarding_source_delete: {
    required: { organizationId: 'uuid', sourceId: 'uuid' },
  },
  onboarding_source_put: {
    required: { organizationId: 'uuid', source: 'jsonb' },
  },
  onboarding_start: {
    required: { organizationId: 'uuid' },
  },
  organization_create: {
    required: { organizationId: 'uuid', fields: 'jsonb', subject: 'text' },
  },
  organization_delete: {
    required: { organizationId: 'uuid' },
  },
  organization_member_delete: {
    required: { organizationId: 'uuid', subject: 'text' },
  },
  organization_member_put: {
    required: { organizationId: 'uuid', subject: 'text', role: 'text' },
  },
  organization_purge: {
    required: { organizationId: 'uuid', limit: 'int4', forget: 'bool' },
  },
  organization_update: {
    required: { organizationId: 'uuid', patch: 'jsonb', platform: 'bool' },
  },
  organizations_deleted: {
    required: {},
  },
  organizations_list: {
    required: {
      subject: 'text',
      status: 'text',
      createdAtUs: 'int8',
      id: 'uuid',
      inclusive: 'bool',
      backward: 'bool',
      limit: 'int4',
    },
    returnsSet: true,
  },
  rate_limit_buckets_clean: {
    required: { rows: 'int4' },
  },
  rate_limit_hold: {
    required: { keys: 'text[]', until: 'timestamptz' },
  },
  rate_limit_take: {
    required: { buckets: 'jsonb' },
  },
  run_attachment: {
    required: { organizationId: 'uuid', runId: 'uuid', leaseToken: 'text', attachmentId: 'uuid' },
  },
  run_complete: {
    required: {
      organizationId: 'uuid',
      runId: 'uuid',
      leaseToken: 'text',
      bodyHash: 'text',
      result: 'jsonb',
      report: 'jsonb',
      checks: 'jsonb',
      evaluationDigest: 'text',
    },
    optional: { maxAttempts: 'int4', backoffSeconds: 'int4', backoffMaxSeconds: 'int4' },
  },
  run_conversation: {
    required: { organizationId: 'uuid', runId: 'uuid', leaseToken: 'text', limit: 'int4', maxBytes: 'int4' },
  },
  run_fail: {
    required: {
      organizationId: 'uuid',
      runId: 'uuid',
      leaseToken: 'text',
      bodyHash: 'text',
      error: 'jsonb',
      report: 'jsonb',
      maxAttempts: 'int4',
      backoffSeconds: 'int4',
      backoffMaxSeconds: 'int4',
    },
  },
  run_heartbeat: {
    required: { organizationId: 'uuid', runId: 'uuid', leaseToken: 'text', leaseSeconds: 'int4' },
    optional: { cancelGraceSeconds: 'int4' },
  },
  run_lease_check: {
    required: { organizationId: 'uuid', runId: 'uuid', leaseToken: 'text' },
  },
  run_logs_append: {
    required: { organizationId: 'uuid', runId: 'uuid', leaseToken: 'text', entries: 'jsonb' },
  },
  run_message_write: {
    required: {
      organizationId: 'uuid',
      runId: 'uuid',
      leaseToken: 'text',
      baseRevision: 'int4',
      parts: 'jsonb',
      append: 'text',
    },
  },
  run_output_record: {
    required: {
      organizationId: 'uuid',
      runId: 'uuid',
      leaseToken: 'text',
      path: 'text',
      layoutKey: 'text',
      storageKey: 'text',
      size: 'int8',
      sha256: 'text',
      mediaType: 'text',
    },
  },
  run_request_expire: {
    required: {
      organizationId: 'uuid',
      runRequestId: 'uuid',
      maxAttempts: 'int4',
      backoffSeconds: 'int4',
      backoffMaxSeconds: 'int4',
    },
  },
  run_request_release: {
    required: { organizationId: 'uuid', runRequestId: 'uuid', leaseToken: 'text' },
  },
  run_requests_publish: {
    required: { organizationId: 'uuid', runRequestIds: 'uuid[]' },
  },
  run_requests_pull: {
    required: {
      workerIds: 'text[]',
      organizationIds: 'uuid[]',
      profileKeys: 'text[]',
      kinds: 'text[]',
      claimSeconds: 'int4',
    },
  },
  run_running: {
    required: {
      organizationId: 'uuid',
      runId: 'uuid',
      leaseToken: 'text',
      harness: 'text',
      model: 'text',
      workspaceUri: 'text',
    },
  },
  run_start: {
    required: {
      organizationId: 'uuid',
      runRequestId: 'uuid',
      runId: 'uuid',
      leaseToken: 'text',
      workerId: 'text',
      leaseSeconds: 'int4',
    },
  },
  schedule_create: {
    required: { organizationId: 'uuid', schedule: 'jsonb', nextRunAt: 'timestamptz', actor: 'jsonb' },
  },
  schedule_delete: {
    required: { organizationId: 'uuid', scheduleRef: 'text', actor: 'jsonb' },
  },
  schedule_fire: {
    required: {
      organizationId: 'uuid',
      scheduleId: 'uuid',
      fireAt: 'timestamptz',
      version: 'int4',
      nextRunAt: 'timestamptz',
    },
    optional: { now: 'timestamptz' },
  },
  schedule_pause: {
    required: { organizationId: 'uuid', scheduleRef: 'text', actor: 'jsonb' },
  },
  schedule_resume: {
    required: {
      organizationId: 'uuid',
      scheduleRef: 'text',
      nextRunAt: 'timestamptz',
      version: 'int4',
      actor: 'jsonb',
    },
  },
  schedule_update: {
    required: {
      organizationId: 'uuid',
      scheduleRef: 'text',
      expectedVersion: 'int4',
      patch: 'jsonb',
      nextRunAt: 'timestamptz',
      actor: 'jsonb',
    },
  },
  task_cancel: {
    required: { organizationId: 'uuid', taskRef: 'text', actor: 'jsonb' },
  },
  task_create: {
    required: { organizationId: 'uuid', task: 'jsonb', actor: 'jsonb' },
  },
  task_dependency_create: {
    required: { organizationId: 'uuid', taskRef: 'text', dependsOn: 'text', required: 'bool', actor: 'jsonb' },
  },
  task_dependency_delete: {
    required: { organizationId: 'uuid', taskRef: 'text', dependsOn: 'text', actor: 'jsonb' },
  },
  task_explain: {
    required: { organizationId: 'uuid', taskRef: 'text' },
    optional: { limit: 'int4' },
  },
  task_find: {
    required: { organizationId: 'uuid', taskRef: 'text' },
  },
  task_input_put: {
    required: {
      organizationId: 'uuid',
      taskRef: 'text',
      path: 'text',
      storageKey: 'text',
      size: 'int8',
      sha256: 'text',
      mediaType: 'text',
      actor: 'jsonb',
    },
  },
  task_outcome_stage: {
    required: { organizationId: 'uuid', taskRef: 'text', body: 'jsonb', bodyHash: 'text', actor: 'jsonb' },
  },
  task_retry: {
    required: { organizationId: 'uuid', taskRef: 'text', actor: 'jsonb' },
  },
  task_update: {
    required: { organizationId: 'uuid', taskRef: 'text', expectedVersion: 'int4', patch: 'jsonb', actor: 'jsonb' },
  },
  tasks_wake: {
    required: { organizationId: 'uuid', taskIds: 'uuid[]' },
  },
  timezone_matches: {
    required: { timezone: 'text', instants: 'timestamptz[]', seconds: 'int4[]' },
  },
  tokens_held: {
    required: { organizationId: 'uuid', hashes: 'text[]' },
  },
  work_dispatch_set: {
    required: { organizationId: 'uuid', stopped: 'bool', actor: 'jsonb' },
  },
} as const satisfies Readonly<Record<string, Signature>>;
