-- What every table and column is: shown by GraphQL, and kept complete by a test. Organizations, profiles, tasks and runs.
set local role runner_owner;

comment on table app.organizations is 'Tenants. Everything else belongs to one of them.';
comment on column app.organizations.id is 'Chosen by who creates it.';
comment on column app.organizations.slug is 'Stable name in addresses; unique among those that are not deleted.';
comment on column app.organizations.name is 'For people.';
comment on column app.organizations.status is
  'onboarding: until its onboarding is completed. suspended: reads work, nothing is handed out.';
comment on column app.organizations.onboarded_at is 'When its onboarding was completed.';
comment on column app.organizations.work_dispatch_stopped_at is
  'Since when nothing new is published; null while work is dispatched.';
comment on column app.organizations.root_uri is 'Root of its memory, a logical address.';
comment on column app.organizations.authorization_epoch is
  'Rises whenever what agents may do changes; their reads are fenced by it.';
comment on column app.organizations.config is 'Time zone, departments, limits and root of storage.';
comment on column app.organizations.constraints is
  'Allowed integrations, blocked domains, and the risks that need an approval.';
comment on column app.organizations.deleted_at is
  'When it was deleted: hidden from then on, its rows are removed in the background.';
comment on column app.organizations.created_at is 'When it was made.';
comment on column app.organizations.updated_at is 'When it was last changed.';

comment on table app.organization_members is 'Whose tokens reach an organization, where owners sign in with JWTs.';
comment on column app.organization_members.organization_id is 'The organization it belongs to.';
comment on column app.organization_members.subject is 'The `sub` of the token.';
comment on column app.organization_members.role is 'viewers read only.';
comment on column app.organization_members.created_at is 'When it was made.';
comment on column app.organization_members.updated_at is 'When it was last changed.';

comment on table app.agent_catalogs is
  'Published catalogs of profile templates, for all organizations; never changed or removed. The newest is current.';
comment on column app.agent_catalogs.revision is 'SHA-256 of its canonical JSON, in hex.';
comment on column app.agent_catalogs.ordinal is 'The order of publication.';
comment on column app.agent_catalogs.catalog is 'The templates and what they share.';
comment on column app.agent_catalogs.published_at is 'When it was published.';

comment on table app.agent_profiles is 'The agents of an organization.';
comment on column app.agent_profiles.organization_id is 'The organization it belongs to.';
comment on column app.agent_profiles.id is 'Id of the profile.';
comment on column app.agent_profiles.key is 'Stable name; unique in the organization.';
comment on column app.agent_profiles.name is 'For people.';
comment on column app.agent_profiles.kind is 'operator: anything. chat: answers people. department: its own tasks.';
comment on column app.agent_profiles.department is 'Of department profiles.';
comment on column app.agent_profiles.status is 'disabled: it is given no work.';
comment on column app.agent_profiles.root_uri is 'Root of its files, a logical address.';
comment on column app.agent_profiles.instructions_uri is 'Its instructions, a logical address.';
comment on column app.agent_profiles.config is
  'Run mode, capacity, tools, skills, model, and the template it was made from.';
comment on column app.agent_profiles.tool_policy_narrowed is
  'A person took tool policies away: provisioning never brings them back.';
comment on column app.agent_profiles.deleted_at is 'When it was deleted; its history stays.';
comment on column app.agent_profiles.created_at is 'When it was made.';
comment on column app.agent_profiles.updated_at is 'When it was last changed.';

comment on table app.tasks is
  'Work to be done. Initiatives are planned and have tasks below them; tasks are executed by runs.';
comment on column app.tasks.organization_id is 'The organization it belongs to.';
comment on column app.tasks.id is 'Id of the task.';
comment on column app.tasks.identifier_scope is 'T for tasks, I for initiatives.';
comment on column app.tasks.identifier_number is 'Counted in the organization, by scope.';
comment on column app.tasks.parent_id is 'The initiative it is below of.';
comment on column app.tasks.root_task_id is 'The top of its hierarchy; itself at depth 0.';
comment on column app.tasks.depth is 'How far below its root.';
comment on column app.tasks.owner_agent_profile_id is 'Whose work it is.';
comment on column app.tasks.source_chat_id is 'The chat it came from.';
comment on column app.tasks.source_message_id is 'The message it came from.';
comment on column app.tasks.kind is 'Initiatives are planned, tasks are executed.';
comment on column app.tasks.status is
  'pending: ready to run. blocked: see its blockers. waiting: until a time. Open are those and running.';
comment on column app.tasks.phase is 'What its next run does; closed when it is over.';
comment on column app.tasks.title is 'For people.';
comment on column app.tasks.priority is 'Higher goes first.';
comment on column app.tasks.version is 'Rises with every change.';
comment on column app.tasks.graph_revision is
  'Rises with every change of the structure below its root; counted at the root.';
comment on column app.tasks.agent_run_count is 'Runs that were started for it.';
comment on column app.tasks.consumed_agent_run_count is
  'Runs that were started for it and below it; what the budget limits.';
comment on column app.tasks.replan_count is 'How often it was planned again.';
comment on column app.tasks.completion_revision is 'Rises with each completion.';
comment on column app.tasks.created_by_run_id is 'The run that made it.';
comment on column app.tasks.spec is 'Objective, inputs, acceptance criteria, budget, verification.';
comment on column app.tasks.blockers is 'Why it is blocked, as found when it last changed.';
comment on column app.tasks.active_run_id is 'The run that works on it.';
comment on column app.tasks.contract is 'Failures of its acceptance criteria in this phase.';
comment on column app.tasks.answers is 'What people answered about it, for its next run.';
comment on column app.tasks.waiting_until is 'When it goes on by itself.';
comment on column app.tasks.waiting_reason is 'What it waits for, as its run said.';
comment on column app.tasks.error is 'Why it failed.';
comment on column app.tasks.result is 'What it led to.';
comment on column app.tasks.failure_origin_id is 'The task whose failure ended it, maybe itself; null: a person did.';
comment on column app.tasks.dedupe_key is 'An open task with the same key is not made twice.';
comment on column app.tasks.scheduled_at is 'It does not start before.';
comment on column app.tasks.due_at is 'When it should be done.';
comment on column app.tasks.due_order is 'Sort key of due_at: those without come last.';
comment on column app.tasks.started_at is 'When its first run started.';
comment on column app.tasks.completed_at is 'When it was completed.';
comment on column app.tasks.created_at is 'When it was made.';
comment on column app.tasks.updated_at is 'When it was last changed.';
comment on column app.tasks.replan is 'Why an initiative is planned again.';
comment on column app.tasks.verification is 'What a verifier judges.';
comment on column app.tasks.schedule_id is 'The schedule whose fire made it.';
comment on column app.tasks.spend_limited is
  'Of a root: something in its hierarchy has a spend limit, so what runs cost is counted.';
comment on column app.tasks.spent_cost_minor_units is
  'What its runs and those below it cost, in minor units, where that is counted.';
comment on column app.tasks.spent_tokens is 'Tokens of those runs.';
comment on column app.tasks.cost_known_run_count is
  'How many of those runs said what they cost; the cost of others is unknown.';
comment on column app.tasks.spend_allowance is 'The budget as it was set, once an answer has raised it.';

comment on table app.task_dependencies is 'Which task waits for which.';
comment on column app.task_dependencies.organization_id is 'The organization it belongs to.';
comment on column app.task_dependencies.id is 'Id of the edge.';
comment on column app.task_dependencies.task_id is 'The task that waits.';
comment on column app.task_dependencies.depends_on_task_id is 'What it waits for.';
comment on column app.task_dependencies.root_task_id is 'Root of the task that waits.';
comment on column app.task_dependencies.depends_on_root_task_id is 'Root of what it waits for.';
comment on column app.task_dependencies.required is
  'Whether it waits until the other is completed, or only comes after it.';
comment on column app.task_dependencies.created_at is 'When it was made.';

comment on table app.task_identifiers is 'The last number that was given to a task, by scope.';
comment on column app.task_identifiers.organization_id is 'The organization it belongs to.';
comment on column app.task_identifiers.scope is 'T or I.';
comment on column app.task_identifiers.last_number is 'The last one that was given.';

comment on table app.task_inputs is 'Files that were uploaded as inputs of a task.';
comment on column app.task_inputs.organization_id is 'The organization it belongs to.';
comment on column app.task_inputs.task_id is 'The task.';
comment on column app.task_inputs.path is 'Where a run finds it.';
comment on column app.task_inputs.storage_key is 'Where the bytes lie in the object storage; never shown.';
comment on column app.task_inputs.size is 'In bytes.';
comment on column app.task_inputs.sha256 is 'SHA-256 of the bytes, in hex.';
comment on column app.task_inputs.media_type is 'As its content says.';
comment on column app.task_inputs.created_at is 'When it was made.';

comment on table app.task_outcomes is
  'What agents handed in about their run: plans, verdicts, waits, questions. Applied when the run completes.';
comment on column app.task_outcomes.organization_id is 'The organization it belongs to.';
comment on column app.task_outcomes.run_id is 'The run; it hands in one.';
comment on column app.task_outcomes.task_id is 'Its task.';
comment on column app.task_outcomes.kind is 'What was handed in.';
comment on column app.task_outcomes.idempotency_key is 'Chosen by the agent: sent again it gets the same answer.';
comment on column app.task_outcomes.body_hash is 'Digest of what was sent.';
comment on column app.task_outcomes.task_version is 'The version of the task that the run saw.';
comment on column app.task_outcomes.graph_revision is 'The structure that the run saw.';
comment on column app.task_outcomes.outcome is 'What was handed in.';
comment on column app.task_outcomes.reference_ids is 'Tasks that a plan names.';
comment on column app.task_outcomes.applied_at is 'When the run completed with it.';
comment on column app.task_outcomes.created_at is 'When it was made.';

comment on table app.run_requests is
  'What waits for a worker: one for each phase of a task, and one for each answer in a chat.';
comment on column app.run_requests.organization_id is 'The organization it belongs to.';
comment on column app.run_requests.id is 'Id of the request.';
comment on column app.run_requests.kind is 'A task, or an answer in a chat.';
comment on column app.run_requests.task_id is 'The task.';
comment on column app.run_requests.agent_profile_id is 'Who runs it.';
comment on column app.run_requests.mode is 'What the run does.';
comment on column app.run_requests.state is
  'queued: not due, or dispatch is stopped. published: a worker may take it. leased: handed to one. started: a run holds the lease. finished and cancelled: over.';
comment on column app.run_requests.priority is 'Higher goes first.';
comment on column app.run_requests.attempt is 'Starts so far.';
comment on column app.run_requests.fence is 'Rises with every claim: an older lease never fits again.';
comment on column app.run_requests.lease_secret_hash is 'Digest of the secret of the lease; never shown.';
comment on column app.run_requests.lease_expires_at is 'When the lease ends without a heartbeat.';
comment on column app.run_requests.worker_id is 'Who holds it, as the worker calls itself.';
comment on column app.run_requests.run_id is 'The last run of it.';
comment on column app.run_requests.execution_token_hash is 'Digest of the capability of the last start; never shown.';
comment on column app.run_requests.due_at is 'When it may be published.';
comment on column app.run_requests.parked is 'Queued because work dispatch is stopped.';
comment on column app.run_requests.published_at is 'Since when workers may take it.';
comment on column app.run_requests.cancel_requested_at is
  'It was cancelled while a worker held it, and holds its slot until that one reports.';
comment on column app.run_requests.finished_at is 'When it was over.';
comment on column app.run_requests.created_at is 'When it was made.';
comment on column app.run_requests.chat_id is 'The chat of an answer.';
comment on column app.run_requests.message_id is 'The message of an answer.';
comment on column app.run_requests.staged_run_id is 'A run that left something which its end has to look at.';

comment on table app.runs is 'Attempts of workers at run requests.';
comment on column app.runs.organization_id is 'The organization it belongs to.';
comment on column app.runs.id is 'Chosen by the worker.';
comment on column app.runs.kind is 'Of a task, or of an answer in a chat.';
comment on column app.runs.task_id is 'The task.';
comment on column app.runs.run_request_id is 'What it is an attempt at.';
comment on column app.runs.agent_profile_id is 'Who runs.';
comment on column app.runs.attempt is 'Which start of its request.';
comment on column app.runs.mode is 'What it does.';
comment on column app.runs.status is 'starting and running are active, the others are over.';
comment on column app.runs.fence is 'The lease under which it was started.';
comment on column app.runs.lease_secret_hash is 'Digest of the secret of that lease; never shown.';
comment on column app.runs.worker_id is 'Who ran it, as the worker calls itself.';
comment on column app.runs.harness is 'What the agent ran in.';
comment on column app.runs.model is 'The model that was used.';
comment on column app.runs.workspace_uri is 'Where the worker worked, as it says.';
comment on column app.runs.log_state is 'Whether its logs are complete.';
comment on column app.runs.log_count is 'Entries of its log.';
comment on column app.runs.output is 'What it answered.';
comment on column app.runs.error is 'Why it failed.';
comment on column app.runs.receipts is 'Commands that the worker ran, as digests.';
comment on column app.runs.input_tokens is 'Tokens it read.';
comment on column app.runs.output_tokens is 'Tokens it wrote.';
comment on column app.runs.tool_calls is 'Calls of tools.';
comment on column app.runs.cost_minor_units is 'What it cost, in minor units.';
comment on column app.runs.cost_known is 'Whether the worker said what it cost.';
comment on column app.runs.finish_call is 'The call that ended it.';
comment on column app.runs.finish_hash is 'Digest of that call: a repeat gets the same answer.';
comment on column app.runs.started_at is 'When it started.';
comment on column app.runs.finished_at is 'When it was over.';
comment on column app.runs.created_at is 'When it was made.';
comment on column app.runs.updated_at is 'When it was last changed.';
comment on column app.runs.chat_id is 'The chat of an answer.';
comment on column app.runs.message_id is 'The message of an answer.';
comment on column app.runs.spend_limited is 'Whether something in the hierarchy of its task has a spend limit.';

comment on table app.run_logs is 'What runs say of themselves: safe technical metadata.';
comment on column app.run_logs.organization_id is 'The organization it belongs to.';
comment on column app.run_logs.run_id is 'The run.';
comment on column app.run_logs.sequence is 'The place in its log.';
comment on column app.run_logs.category is 'What it is about.';
comment on column app.run_logs.status is 'How it went.';
comment on column app.run_logs.label is 'In short, one line.';
comment on column app.run_logs.detail is 'Some more, one line.';
comment on column app.run_logs.occurred_at is 'When it happened, as the worker says.';

comment on table app.run_outputs is 'Files that runs made.';
comment on column app.run_outputs.organization_id is 'The organization it belongs to.';
comment on column app.run_outputs.run_id is 'The run.';
comment on column app.run_outputs.path is 'Where the run put it.';
comment on column app.run_outputs.storage_key is 'Where the bytes lie in the object storage; never shown.';
comment on column app.run_outputs.size is 'In bytes.';
comment on column app.run_outputs.sha256 is 'SHA-256 of the bytes, in hex.';
comment on column app.run_outputs.media_type is 'As its content says.';
comment on column app.run_outputs.created_at is 'When it was made.';

comment on table app.run_inputs is 'What runs were given, fixed at their start.';
comment on column app.run_inputs.organization_id is 'The organization it belongs to.';
comment on column app.run_inputs.run_id is 'The run.';
comment on column app.run_inputs.path is 'Where the run finds it.';
comment on column app.run_inputs.role is 'Whether it instructs or is material.';
comment on column app.run_inputs.media_type is 'Of the file.';
comment on column app.run_inputs.size is 'In bytes.';
comment on column app.run_inputs.sha256 is 'SHA-256 of the bytes, in hex; null where they were not there.';
comment on column app.run_inputs.content is 'The text itself, where it is short; never shown.';
comment on column app.run_inputs.storage_key is 'Where the bytes lie in the object storage; never shown.';
comment on column app.run_inputs.chat_id is 'The chat whose attachment it is.';

reset role;
