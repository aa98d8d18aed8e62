-- The same for dispatch, inbox, chats, schedules, onboarding and context; the tables of the migration are not the owner's.
set local role runner_owner;

comment on table app.dispatch is 'Counters of what is held of an organization, by which pulls go.';
comment on column app.dispatch.organization_id is 'The organization it belongs to.';
comment on column app.dispatch.kind is 'Tasks and answers in chats have capacities of their own.';
comment on column app.dispatch.capacity is 'How many requests may be held at once.';
comment on column app.dispatch.held is 'How many are leased or started.';
comment on column app.dispatch.open_lanes is 'Profiles with something to take.';
comment on column app.dispatch.stopped is 'Work dispatch is stopped: nothing new is published.';
comment on column app.dispatch.suspended is 'Nothing is handed out.';
comment on column app.dispatch.turn is 'When it was last served: who waited longest comes first.';
comment on column app.dispatch.open is 'Whether a pull may take something.';

comment on table app.dispatch_lanes is 'The same counters for each profile.';
comment on column app.dispatch_lanes.organization_id is 'The organization it belongs to.';
comment on column app.dispatch_lanes.agent_profile_id is 'The profile.';
comment on column app.dispatch_lanes.kind is 'Tasks or answers in chats.';
comment on column app.dispatch_lanes.capacity is 'How many requests of it may be held at once.';
comment on column app.dispatch_lanes.ready is 'How many are published.';
comment on column app.dispatch_lanes.held is 'How many are leased or started.';
comment on column app.dispatch_lanes.open is 'Whether a pull may take something.';

comment on table app.pull_gate is 'One row that pulls pass through one by one.';
comment on column app.pull_gate.only_row is 'Always true.';

comment on table app.human_inbox_items is 'What people are asked and told.';
comment on column app.human_inbox_items.organization_id is 'The organization it belongs to.';
comment on column app.human_inbox_items.id is 'Id of the item.';
comment on column app.human_inbox_items.kind is
  'Questions are responded to, notifications acknowledged, approvals and reconciliations decided at their action.';
comment on column app.human_inbox_items.status is 'cancelled: what it was about ended.';
comment on column app.human_inbox_items.purpose is 'What an answer does.';
comment on column app.human_inbox_items.blocking is 'The task waits for the answer.';
comment on column app.human_inbox_items.title is 'In short.';
comment on column app.human_inbox_items.body is 'The whole of it.';
comment on column app.human_inbox_items.options is 'Answers to choose from.';
comment on column app.human_inbox_items.task_id is 'The task it is about.';
comment on column app.human_inbox_items.run_id is 'The run that asks.';
comment on column app.human_inbox_items.action_id is 'The action it is about.';
comment on column app.human_inbox_items.chat_id is 'The chat it is about.';
comment on column app.human_inbox_items.response is 'What was answered.';
comment on column app.human_inbox_items.responded_at is 'When it was handled.';
comment on column app.human_inbox_items.created_at is 'When it was made.';
comment on column app.human_inbox_items.updated_at is 'When it was last changed.';
comment on column app.human_inbox_items.note is 'What a person wrote besides the option.';
comment on column app.human_inbox_items.allow_free_text is 'Whether an answer may be something else than an option.';
comment on column app.human_inbox_items.schedule_id is 'The schedule it is about.';

comment on table app.idempotency_keys is 'First answers of calls that carried an Idempotency-Key, kept for a day.';
comment on column app.idempotency_keys.organization_id is 'The organization that was called about.';
comment on column app.idempotency_keys.caller is 'Who called, as a digest.';
comment on column app.idempotency_keys.method is 'Method of the call.';
comment on column app.idempotency_keys.path is 'Path of the call.';
comment on column app.idempotency_keys.key is 'Chosen by the caller.';
comment on column app.idempotency_keys.body_hash is 'Digest of the body: another body with the same key is refused.';
comment on column app.idempotency_keys.status_code is 'Status of the first answer; null while it is under way.';
comment on column app.idempotency_keys.answer is 'The first answer; never shown.';
comment on column app.idempotency_keys.created_at is 'When it was made.';

comment on table app.chats is 'Conversations of people with the chat profile.';
comment on column app.chats.organization_id is 'The organization it belongs to.';
comment on column app.chats.id is 'Id of the chat.';
comment on column app.chats.title is 'For people.';
comment on column app.chats.status is 'archived ones are removed after 30 days.';
comment on column app.chats.summary is 'What it is about, as the agent sums it up.';
comment on column app.chats.harness_session_id is 'The session of the runtime that answers; never shown.';
comment on column app.chats.settings is 'Pinned tasks.';
comment on column app.chats.is_onboarding is 'The chat of the onboarding, which nobody changes.';
comment on column app.chats.last_message_at is 'When its last message came; at first its creation.';
comment on column app.chats.archived_at is 'When it was archived.';
comment on column app.chats.removed_at is 'Its removal has begun: nobody sees it.';
comment on column app.chats.created_at is 'When it was made.';
comment on column app.chats.updated_at is 'When it was last changed.';

comment on table app.messages is 'What people and agents say in chats.';
comment on column app.messages.organization_id is 'The organization it belongs to.';
comment on column app.messages.id is 'Id of the message.';
comment on column app.messages.chat_id is 'Its chat.';
comment on column app.messages.reply_to_message_id is 'The message that an answer answers.';
comment on column app.messages.role is 'user: a person. assistant: an agent.';
comment on column app.messages.status is
  'An answer is written while it is pending; complete, cancelled and failed are final.';
comment on column app.messages.revision is 'Rises with every change.';
comment on column app.messages.author is 'Who wrote it.';
comment on column app.messages.parts is 'Texts, questions, answers, notes, attachments.';
comment on column app.messages.error is 'Why the answer failed.';
comment on column app.messages.write_hash is 'Digest of the write that made this revision.';
comment on column app.messages.search_text is 'What a search looks at, once it is final.';
comment on column app.messages.completed_at is 'When it became final.';
comment on column app.messages.created_at is 'When it was made.';
comment on column app.messages.updated_at is 'When it was last changed.';

comment on table app.chat_attachments is 'Files that people attached to a chat.';
comment on column app.chat_attachments.organization_id is 'The organization it belongs to.';
comment on column app.chat_attachments.chat_id is 'The chat.';
comment on column app.chat_attachments.id is 'Chosen by the client; unique in the chat.';
comment on column app.chat_attachments.file_name is 'As the person called it.';
comment on column app.chat_attachments.media_type is 'As its content says.';
comment on column app.chat_attachments.size_bytes is 'In bytes.';
comment on column app.chat_attachments.sha256 is 'SHA-256 of the bytes, in hex.';
comment on column app.chat_attachments.storage_key is 'Where the bytes lie in the object storage; never shown.';
comment on column app.chat_attachments.created_at is 'When it was made.';

comment on table app.schedules is 'Tasks made by the clock.';
comment on column app.schedules.organization_id is 'The organization it belongs to.';
comment on column app.schedules.id is 'Id of the schedule.';
comment on column app.schedules.key is 'Stable name; unique in the organization.';
comment on column app.schedules.title is 'For people.';
comment on column app.schedules.cron is 'When it fires, in five fields.';
comment on column app.schedules.timezone is 'The IANA zone of those fields.';
comment on column app.schedules.status is 'paused: it does not fire, and nothing is made up for.';
comment on column app.schedules.task_template is 'The task that a fire makes.';
comment on column app.schedules.overlap is 'skip: no task while one of its tasks is open.';
comment on column app.schedules.next_run_at is 'When it fires next; null while it is paused.';
comment on column app.schedules.last_run_at is 'When it fired last.';
comment on column app.schedules.last_task_id is 'The task it made last.';
comment on column app.schedules.failing_since is 'Since when its fires can make no task.';
comment on column app.schedules.created_at is 'When it was made.';
comment on column app.schedules.updated_at is 'When it was last changed.';

comment on table app.onboardings is 'How organizations come to be: evidence, research, review, completion.';
comment on column app.onboardings.organization_id is 'The organization it belongs to.';
comment on column app.onboardings.status is 'Where it stands.';
comment on column app.onboardings.generation is 'Rises with every change; calls say which one they have seen.';
comment on column app.onboardings.setup is 'Name, website, time zone, currency, departments, summary.';
comment on column app.onboardings.integrations is 'What was decided about each integration.';
comment on column app.onboardings.chat_id is 'Its chat.';
comment on column app.onboardings.research_status is 'How the research goes.';
comment on column app.onboardings.research_generation is 'The generation that the attempt began with.';
comment on column app.onboardings.research_attempts is 'How often it was tried.';
comment on column app.onboardings.research_started_at is 'When the last attempt began.';
comment on column app.onboardings.research_finished_at is 'When it was over.';
comment on column app.onboardings.research_error is 'Why it failed.';
comment on column app.onboardings.research_warnings is 'What it could not do.';
comment on column app.onboardings.review is 'What its owner confirms by the completion.';
comment on column app.onboardings.created_at is 'When it was made.';
comment on column app.onboardings.updated_at is 'When it was last changed.';

comment on table app.research_findings is 'Claims about an organization, and the sources that say so.';
comment on column app.research_findings.organization_id is 'The organization it belongs to.';
comment on column app.research_findings.id is 'Id of the finding.';
comment on column app.research_findings.origin is 'job: the research of the onboarding. chat: asked for in its chat.';
comment on column app.research_findings.claim is 'What is claimed.';
comment on column app.research_findings.source_ids is 'The sources that say so.';
comment on column app.research_findings.created_at is 'When it was made.';

comment on table app.context_sources is 'Retained evidence. It never changes.';
comment on column app.context_sources.organization_id is 'The organization it belongs to.';
comment on column app.context_sources.id is 'Id of the source.';
comment on column app.context_sources.origin is 'Where it came from.';
comment on column app.context_sources.status is 'Only ingested ones ground what is published.';
comment on column app.context_sources.kind is 'What it is.';
comment on column app.context_sources.file_name is 'As it was called.';
comment on column app.context_sources.media_type is 'As its content says.';
comment on column app.context_sources.size_bytes is 'In bytes.';
comment on column app.context_sources.sha256 is 'SHA-256 of the bytes, in hex.';
comment on column app.context_sources.storage_key is 'Where the bytes lie in the object storage; never shown.';
comment on column app.context_sources.department is 'The department it is about; null: the whole organization.';
comment on column app.context_sources.provenance_urls is 'Where it was found.';
comment on column app.context_sources.title is 'Its own title.';
comment on column app.context_sources.dedupe_key is 'What it was made of: made again it is the same source.';
comment on column app.context_sources.error is 'Why it could not be used.';
comment on column app.context_sources.created_at is 'When it was made.';

comment on table app.context_revisions is
  'What an organization knows of itself, as it was published. A revision never changes.';
comment on column app.context_revisions.organization_id is 'The organization it belongs to.';
comment on column app.context_revisions.scope is 'The whole organization, or a department.';
comment on column app.context_revisions.revision is 'Its number in its scope.';
comment on column app.context_revisions.base_revision is 'The one it was made from; 0: the first.';
comment on column app.context_revisions.created_by is 'Who published it.';
comment on column app.context_revisions.created_at is 'When it was made.';

comment on table app.context_documents is 'The documents of a revision.';
comment on column app.context_documents.organization_id is 'The organization it belongs to.';
comment on column app.context_documents.scope is 'Of the revision.';
comment on column app.context_documents.revision is 'The revision.';
comment on column app.context_documents.path is 'Where agents find it.';
comment on column app.context_documents.kind is 'What it holds.';
comment on column app.context_documents.storage_key is 'Where the bytes lie in the object storage; never shown.';
comment on column app.context_documents.size_bytes is 'In bytes.';
comment on column app.context_documents.sha256 is 'SHA-256 of the bytes, in hex.';
comment on column app.context_documents.source_ids is 'Sources that its entries cite.';

comment on table app.context_publications is 'Which revision of a scope is current.';
comment on column app.context_publications.organization_id is 'The organization it belongs to.';
comment on column app.context_publications.scope is 'The whole organization, or a department.';
comment on column app.context_publications.revision is 'The current one.';
comment on column app.context_publications.published_at is 'Since when.';
comment on column app.context_publications.unreadable is 'Documents that the last audit could not read.';

comment on table app.context_health_reports is 'Assessments of the context. A report never changes.';
comment on column app.context_health_reports.organization_id is 'The organization it belongs to.';
comment on column app.context_health_reports.revision is 'Its number.';
comment on column app.context_health_reports.version is 'Of the format of its file.';
comment on column app.context_health_reports.assessment is 'What was assessed.';
comment on column app.context_health_reports.context is 'The revisions that were assessed, by scope.';
comment on column app.context_health_reports.storage_key is 'Where the bytes lie in the object storage; never shown.';
comment on column app.context_health_reports.size_bytes is 'In bytes.';
comment on column app.context_health_reports.sha256 is 'SHA-256 of the bytes, in hex.';
comment on column app.context_health_reports.created_at is 'When it was made.';

reset role;

comment on table app.schema_migrations is 'Migrations that were applied.';
comment on column app.schema_migrations.version is 'Its number.';
comment on column app.schema_migrations.name is 'Its name.';
comment on column app.schema_migrations.sha256 is 'Digest of its text, which never changes.';
comment on column app.schema_migrations.applied_at is 'When it was applied.';

comment on table app.schema_functions is 'Files of functions that were applied.';
comment on column app.schema_functions.path is 'The file.';
comment on column app.schema_functions.sha256 is 'Digest of its text.';
comment on column app.schema_functions.functions is 'The functions that it made.';

comment on table app.schema_views is 'Files of views that were applied.';
comment on column app.schema_views.path is 'The file.';
comment on column app.schema_views.sha256 is 'Digest of its text.';
