/** When it happens, and what the caller does about it. */
type Text = readonly [when: string, whatToDo: string];
/** The same for a code that stands below another one, which comes first. */
export type ReasonText = readonly [of: string, when: string, whatToDo: string];

export const FIX = 'Mend the request; `issues` say where.';
export const READ_AGAIN = 'Read it again and decide anew.';
export const LIST = 'Check the id. A deleted one is gone for good.';

/** By status and code. */
export const codeTexts: Readonly<Record<string, Text>> = {
  '400 credential_rejected': [
    'The provider does not accept the credential, or takes none of this kind',
    'Send another one; the issue has the status and the code of the provider.',
  ],
  '400 request_failed': ['Onboarding: the request is not valid', FIX],
  '400 result_too_large': [
    'The result of a tool has more than 5 MiB, or the provider does not show all of it',
    'Ask for less: fewer fields, a smaller page, a shorter time. The issue says more.',
  ],
  '400 settings_invalid': [
    'The settings have another shape than the provider’s, name what the connection does not reach, or a domain that the organization blocks',
    FIX,
  ],
  '400 validation_failed': ['The request is not valid, or names what does not exist or does not go together', FIX],
  '401 admin_unauthorized': ['No token of `ADMIN_TOKENS`, or the session of the explorer is over', 'Sign in again.'],
  '401 agent_unauthorized': [
    'The token is missing, unknown or over, or may not do this',
    'An agent whose token is over stops: its run has ended. Else see interface.md 5.4.',
  ],
  '401 metrics_unauthorized': [
    'No token of `METRICS_TOKENS`, or none is set and the request comes from another machine or through a proxy',
    'Send a token, or use `METRICS_PORT`.',
  ],
  '401 owner_unauthorized': ['The bearer token is missing or not valid', 'Get a new token.'],
  '403 forbidden': [
    'A viewer writes; a member suspends an organization; with `OWNER_AUTH=open`, a browser of another site asks; the URL of an upload is over',
    'Ask an owner, or a platform operator; begin the upload again.',
  ],
  '403 provider_forbidden': [
    'The organization does not allow this provider (`constraints.allowedIntegrations`), or blocks its domain (`constraints.blockedDomains`); or, at the gateway, the connection may not do this at the provider',
    'Allow it, there or here, or use another provider.',
  ],
  '404 action_not_found': ['Unknown, or of another organization', LIST],
  '404 agent_profile_not_found': ['Unknown, deleted, or of another organization', LIST],
  '404 attachment_not_found': ['Unknown, or of another chat', LIST],
  '404 chat_not_found': ['Unknown, removed, or of another organization', LIST],
  '404 human_inbox_item_not_found': ['Unknown, or of another organization', LIST],
  '404 integration_not_found': ['Unknown, deleted, or of another organization', LIST],
  '404 message_not_found': ['Unknown, or of another organization or chat', LIST],
  '404 not_found': [
    'Unknown path; or there is no such file (of this invocation), artifact, member, schedule, run request, source or revision; or, for agents, nothing by this id',
    LIST,
  ],
  '404 organization_not_found': ['Unknown, deleted, or the caller is no member of it', LIST],
  '404 request_failed': [
    'There is no such onboarding or source; or, when provisioning, no such organization or catalog revision',
    LIST,
  ],
  '404 run_not_found': ['Unknown, or of another organization', LIST],
  '404 tool_not_found': [
    'The integration has no such tool, or its owner has not enabled it',
    'Use a tool that the integration lists.',
  ],
  '404 task_graph_not_found': ['There is no such task', LIST],
  '404 task_not_found': ['Unknown, or of another organization', LIST],
  '405 method_not_allowed': ['The path exists, the method does not', '`Allow` lists those that do.'],
  '408 request_failed': ['Onboarding: the body does not arrive in time', 'Send it again.'],
  '408 request_timeout': ['The body does not arrive in time', 'Send it again.'],
  '409 attachment_not_allowed': [
    'The chat is archived, is the onboarding chat, or is full; or the id has other bytes',
    'Use an open chat, and a new id for other bytes.',
  ],
  '409 chat_response_active': [
    'The chat is to be archived while a reply is in progress',
    'Wait for the reply, or cancel it.',
  ],
  '409 chat_turn_active': ['A message while a reply is in progress', 'Wait for the reply, or cancel it.'],
  '409 daily_limit_reached': [
    'The organization has proposed `maxDailyActions` actions on this day of its own time zone',
    'Wait for the next day, or raise the limit.',
  ],
  '409 human_inbox_item_not_open': ['Somebody has handled it, or its task ended', READ_AGAIN],
  '409 idempotency_key_in_use': ['The first call with this key has not ended', 'Send it again after some seconds.'],
  '409 idempotency_key_reused': [
    'The key came with another body before',
    'Use a new key for each call that is not a repeat.',
  ],
  '409 integration_account_differs': [
    'The credential is of another account than the connected one',
    'Send `replaceAccount: true` if the other account is meant.',
  ],
  '409 integration_conflict': ['The key is in use, or the connection has changed meanwhile', READ_AGAIN],
  '409 integration_not_ready': [
    'The integration is disabled, or has no connection that can be used; the first issue says which',
    'Connect, authorize or enable it.',
  ],
  '409 message_not_cancellable': [
    'The message is not pending',
    'Nothing to do: it is final or is being cancelled. Repeat a cancel under an `Idempotency-Key`.',
  ],
  '409 onboarding_chat_immutable': [
    'A change of the onboarding chat, or a message in it after the completion',
    'Open another chat.',
  ],
  '409 request_failed': ['The slug is in use; or the state of the onboarding does not allow the call', READ_AGAIN],
  '409 run_lease_expired': [
    'The only conflict of the run lifecycle; the first issue says which',
    'See the reasons `lease_lost`, `capacity`, `task_not_ready` and `differs`.',
  ],
  '409 state_conflict': ['The state does not allow it, or the version is out of date', READ_AGAIN],
  '413 attachment_invalid': ['A chat attachment over 50 MB', 'Send a smaller file.'],
  '413 payload_too_large': ['Over 1 MiB of JSON, or over the limit of the upload', 'Send less.'],
  '413 request_failed': ['An onboarding source over 50 MB, or over 1 MiB of JSON', 'Send less.'],
  '415 request_failed': ['Onboarding: no type that a source may have, or no JSON', 'See interface.md 2.7.'],
  '415 unsupported_media_type': [
    'The body is of another media type, or compressed',
    'Send `application/json`, or what the operation names, without `Content-Encoding`.',
  ],
  '416 range_not_satisfiable': ['The byte range begins behind the end', '`Content-Range` has the size.'],
  '429 request_failed': [
    'Onboarding: too many costly calls of the organization at a time',
    'Send it again after `Retry-After`.',
  ],
  '429 too_many_requests': [
    'Too many costly calls of the organization at a time',
    'Send it again after `Retry-After`.',
  ],
  '500 internal_error': [
    'Something unforeseen on our side',
    'Report the request id; the log has the details under it. A call that is safe to repeat may be repeated.',
  ],
  '502 provider_failed': [
    'The provider refuses, or responds in a way that is not the documented one; the issue has its status and code',
    'Look at the provider; trying again rarely helps.',
  ],
  '503 provider_unavailable': [
    'The provider is down, slow, or limits how often it is called',
    'Try again after `Retry-After`.',
  ],
  '503 query_timeout': [
    'Admin GraphQL: a statement took longer than five seconds',
    'Ask for shorter pages, or for one organization.',
  ],
  '503 request_failed': [
    'No template catalog is published; or, in onboarding and provisioning, the database cannot be reached',
    'Publish one (`npm run catalog`), or try again after `Retry-After`.',
  ],
  '503 service_unavailable': [
    'Database or storage cannot be reached, are too slow, or have no room; nothing was changed by halves',
    'Try again after `Retry-After`.',
  ],
};

/** Codes that stand in records, not in responses of their own: where, and what they mean. */
export const recordTexts: Readonly<Record<string, ReasonText>> = {
  acceptance_failed: [
    'run `error`',
    'The result does not meet the acceptance criteria',
    'The next run finds the failed checks in `state.contract`.',
  ],
  cursor_moved: [
    'insight source `lastError`',
    'The provider no longer knows where the collection was',
    'Nothing: it begins anew.',
  ],
  encryption_key_missing: [
    'insight source `lastError`',
    'The key that customers have pseudonyms by does not open',
    'Put the key that is missing back into ENCRYPTION_KEYS.',
  ],
  fact_refused: [
    'insight source `lastError`',
    'The provider sent what its facts do not hold',
    'Report it: the adapter does not fit what the provider sends.',
  ],
  lease_expired: [
    'insight source `lastError`',
    'The process that collected it died, or took too long',
    'Nothing: it is collected again.',
  ],
  child_failed: ['task `error`, `state.replan`', 'A task below failed', 'Retry acts on that task.'],
  internal_error: ['research `error`', 'The research failed on our side', 'Retry it.'],
  outcome_missing: [
    'run `error`',
    'A plan or verify run completed without its outcome',
    'The agent has to stage one (interface.md 2.19).',
  ],
  plan_rejected: [
    'run `error`',
    'The plan no longer fits',
    'The next attempt plans again; the message names what does not fit.',
  ],
  run_lease_expired: [
    'run, task or message `error`',
    'The lease ended without a report',
    'The task is tried again; a message is not.',
  ],
  runtime_unavailable: [
    'message `error`',
    'Nobody started the turn in time, or the profile was disabled',
    'Start a worker for chats, then send another message.',
  ],
  connection_replaced: [
    'action `reason`',
    'The connection that the action was proposed for is gone, or is another one',
    'Propose it again.',
  ],
  integration_deleted: ['action `reason`', 'The integration was deleted', 'Nothing.'],
  overdue: [
    'action `reason`',
    'The action was approved, and could not be begun for `ACTION_APPROVAL_DAYS`',
    'See what its integration is lacking, then propose it again.',
  ],
  not_decided: ['action `reason`', 'Nobody decided about the action in time', 'Propose it again.'],
  not_applied: [
    'action `error`',
    'The provider shows that the action was not applied',
    'Propose it again, with `retryOf`.',
  ],
  tool_error: [
    'action `error`',
    'The tool of an MCP server says that it failed',
    'Look at the server, then propose it again, with `retryOf`.',
  ],
  arguments_unusable: ['action `reason`', 'What is stored of a push is not what this version reads', 'Push again.'],
  pack_unusable: [
    'action `reason`',
    'The pack of a push does not fit what the provider has by now',
    'Fetch, and push again.',
  ],
  repository_too_large: [
    'action `reason`',
    'The repository is larger than `GIT_MIRROR_BYTES`',
    'Raise it, then push again.',
  ],
  settings_changed: [
    'action `reason`',
    'The settings of the integration no longer reach what the action is about',
    'Change the settings, then propose it again.',
  ],
  organization_deleted: ['action `reason`', 'The organization was deleted', 'Nothing.'],
  reply_ended: ['action `reason`', 'Its reply was cancelled, or has failed', 'Ask again in the chat.'],
  task_ended: ['action `reason`', 'Its task was cancelled, or has failed', 'Retry the task: its agent proposes anew.'],
  bytes_changed: [
    'source `error`, `issues`',
    'The stored bytes are not those that were recorded',
    'Restore the file, or upload it again.',
  ],
  bytes_missing: ['source `error`, `issues`', 'The stored bytes are gone', 'Restore the file, or upload it again.'],
  not_text: ['source `error`', 'A text file is not UTF-8', 'Upload it as UTF-8.'],
  claims_without_evidence: [
    'review warning',
    'The model made claims that cite nothing; they were left out',
    'Nothing.',
  ],
  findings_left_out: ['review warning', 'More claims than an onboarding keeps', 'Nothing.'],
  integration_not_connected: [
    'review warning',
    'A disposition is `connect_now`, and there is no usable connection',
    'Connect it, decide `connect_later`, or allow the warning.',
  ],
  integration_undecided: ['review warning', 'A disposition is `unknown`', 'Decide it.'],
  no_departments: ['review warning', 'No department is selected', 'Select some, or allow the warning.'],
  no_evidence: ['review warning', 'Neither a source nor a website was read', 'Upload a source, or name a website.'],
  source_failed: ['review warning', 'A source cannot be used', 'Delete it or upload it again.'],
  summary_failed: [
    'review warning',
    'The model failed, or its output could not be used',
    'Nothing, or retry after mending the model.',
  ],
  timed_out: ['research `error`', 'The research took longer than `RESEARCH_SECONDS`', 'Retry it.'],
  'website_…': [
    'review warning',
    'The website forbids reading (`website_robots`), is blocked, redirects elsewhere or is no page',
    'See the message.',
  ],
  website_refused: ['review warning', 'The address is not public', 'Name a public address.'],
  website_unreachable: [
    'review warning',
    'The website, or its robots.txt, does not respond or fails',
    'Check the address, or try again later.',
  ],
  website_without_text: ['review warning', 'The pages hold no text without running scripts', 'Upload sources instead.'],
  document_empty: ['health finding', 'A document has no entries', 'Add some, or remove it.'],
  document_unreadable: ['health finding', 'A document cannot be read', 'Promote it again.'],
  entry_incomplete: ['health finding', 'An entry has neither value nor notes; a process has no steps', 'Complete it.'],
  evidence_missing: ['health finding', 'A fact cites no evidence', 'Name what grounds it.'],
  evidence_stale: ['health finding', 'Evidence is older than 180 days', 'Check whether it still holds.'],
  evidence_unusable: ['health finding', 'An entry cites a source that grounds nothing', 'Cite another one.'],
  integration_department_disabled: [
    'health finding',
    'An integration is mapped to a department that is not enabled',
    'Map it anew, or enable the department.',
  ],
  integration_mapped: ['health finding', 'What an integration means to the organization', 'Nothing to do.'],
  integration_unmapped: ['health finding', 'Nothing says what a usable integration is for', 'Map it.'],
  integration_unusable: [
    'health finding',
    'An integration is mapped, and disabled or without a usable connection',
    'Connect and enable it, or delete it.',
  ],
  kind_missing: ['health finding', 'The organization has no document of this kind', 'Promote one.'],
  more_findings: ['health finding', 'There are more findings than a report holds', 'Solve these first.'],
  note: ['health finding', 'A finding of an older report', 'See the message.'],

  scope_missing: ['health finding', 'An enabled department has no context of its own', 'Promote one.'],
};
