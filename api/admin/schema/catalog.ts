export const camelCase = (name: string): string => name.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());

/** How a table is shown. Columns that are not granted are not there; tables that are not named here are not shown. */
export type ShownTable = Readonly<{
  /** The list at the root; undefined: read through what it belongs to. */
  list?: string;
  /** The one row by its primary key, at the root. */
  one?: string;
  /** Columns that lists are ordered by, the default first, each with an index behind it. Without any: the primary key. */
  orders?: readonly string[];
  /** Columns that lists are filtered by, each with an index behind it that begins with the organization. */
  filters?: readonly string[];
  /** Those of them without: a busy table has no index of what changes all the time. They need X-Organization-Id at the root. */
  filtersOfOne?: readonly string[];
  /** Columns that are granted because a read needs them, and say nothing. */
  hidden?: readonly string[];
}>;

/** A foreign key as two fields. Some are none in the database, which keeps busy tables free of them (docs/decisions/0020). */
export type Relation = Readonly<{
  table: string;
  columns: readonly string[];
  references: string;
  /** The columns that are referenced; the organization's id, or organization and id. */
  referenced: readonly string[];
  /** On the rows of `table`. */
  field: string;
  /** On the rows of `references`; undefined: one way alone, where no index serves the other. */
  back: string | undefined;
}>;

const byTime = ['created_at'] as const;

export const shownTables: Readonly<Record<string, ShownTable>> = {
  action_files: {},
  actions: {
    list: 'actions',
    one: 'action',
    orders: byTime,
    filters: [
      'organization_id',
      'integration_id',
      'task_id',
      'chat_id',
      'run_id',
      'agent_profile_id',
      'kind',
      'risk',
      'status',
      'decision',
      'created_at',
    ],
  },
  agent_catalogs: { list: 'agentCatalogs', one: 'agentCatalog', orders: ['ordinal'] },
  agent_profiles: { list: 'agentProfiles', one: 'agentProfile', orders: byTime, filters: ['organization_id', 'key'] },
  audit_entries: {
    list: 'auditEntries',
    one: 'auditEntry',
    orders: byTime,
    filters: ['organization_id', 'created_at', 'action', 'actor_kind'],
  },
  chat_attachments: {},
  chats: {
    list: 'chats',
    one: 'chat',
    orders: ['last_message_at'],
    filters: ['organization_id', 'status', 'last_message_at'],
  },
  context_documents: {},
  context_health_reports: { orders: ['revision'] },
  context_publications: {},
  context_revisions: { orders: ['revision'], filters: ['scope'] },
  context_sources: { one: 'contextSource', orders: byTime, filters: ['status', 'created_at'] },
  currency_rate_sources: { list: 'currencyRateSources' },
  currency_rates: { one: 'currencyRate' },
  dispatch: { list: 'dispatches', filters: ['organization_id'] },
  dispatch_lanes: {},
  human_inbox_items: {
    list: 'humanInboxItems',
    one: 'humanInboxItem',
    orders: byTime,
    filters: ['organization_id', 'status', 'created_at'],
  },
  insight_compactions: {},
  insight_connectors: { list: 'insightConnectors', filters: ['organization_id'] },
  insight_cursors: {},
  insight_heads: {},
  insight_publications: {},
  insight_segments: {},
  insight_sources: { list: 'insightSources', one: 'insightSource', filters: ['organization_id', 'integration_id'] },
  insight_units: {
    list: 'insightUnits',
    one: 'insightUnit',
    filters: ['organization_id', 'source_id', 'integration_id'],
  },
  integration_connections: {},
  integration_context_repairs: {},
  integration_tools: {},
  integrations: { list: 'integrations', one: 'integration', filters: ['organization_id', 'key'] },
  messages: { one: 'message', orders: byTime, filters: ['created_at'] },
  onboardings: { list: 'onboardings', one: 'onboarding', filters: ['organization_id'] },
  organization_members: { filters: ['subject'] },
  organizations: {
    list: 'organizations',
    one: 'organization',
    orders: byTime,
    filters: ['id', 'slug', 'created_at'],
    hidden: ['deleted_at'],
  },
  research_findings: { orders: byTime },
  run_inputs: {},
  run_logs: {},
  run_outputs: {},
  run_requests: {
    list: 'runRequests',
    one: 'runRequest',
    orders: byTime,
    filters: ['organization_id', 'task_id', 'agent_profile_id', 'state', 'created_at'],
    filtersOfOne: ['state'],
  },
  runs: {
    list: 'runs',
    one: 'run',
    orders: byTime,
    filters: ['organization_id', 'task_id', 'agent_profile_id', 'status', 'created_at'],
  },
  schedules: { list: 'schedules', one: 'schedule', orders: byTime, filters: ['organization_id', 'key', 'created_at'] },
  task_dependencies: {},
  task_inputs: {},
  task_outcomes: {},
  tasks: {
    list: 'tasks',
    one: 'task',
    orders: ['created_at', 'updated_at', 'priority'],
    filters: [
      'organization_id',
      'identifier_number',
      'owner_agent_profile_id',
      'root_task_id',
      'parent_id',
      'status',
      'created_at',
      'updated_at',
      'priority',
    ],
  },
};

/** What can be ordered by over all organizations as well: the other orders have their index within an organization. */
export const ordersOfAll: readonly string[] = ['created_at', 'last_message_at', 'ordinal'];

/** By the list at the root: the filters that one organization alone can be asked with. */
export const filtersOfOne: ReadonlyMap<string, ReadonlySet<string>> = new Map(
  Object.values(shownTables).flatMap(({ list, filtersOfOne: columns = [] }) =>
    list ? [[list, new Set(columns.map(camelCase))] as const] : [],
  ),
);

function ofOrganization(table: string, back: string): Relation {
  const columns = ['organization_id'];
  return { table, columns, references: 'organizations', referenced: ['id'], field: 'organization', back };
}

/** To a row of the same organization, by `column`. */
function within(table: string, column: string, references: string, field: string, back: string | undefined): Relation {
  const [columns, referenced] = [
    ['organization_id', column],
    ['organization_id', 'id'],
  ];
  return { table, columns, references, referenced, field, back };
}

export const relations: readonly Relation[] = [
  ofOrganization('actions', 'actions'),
  ofOrganization('agent_profiles', 'agentProfiles'),
  ofOrganization('audit_entries', 'auditEntries'),
  ofOrganization('chats', 'chats'),
  ofOrganization('context_health_reports', 'contextHealthReports'),
  ofOrganization('context_publications', 'contextPublications'),
  ofOrganization('context_revisions', 'contextRevisions'),
  ofOrganization('context_sources', 'contextSources'),
  ofOrganization('dispatch', 'dispatches'),
  ofOrganization('human_inbox_items', 'humanInboxItems'),
  ofOrganization('insight_connectors', 'insightConnectors'),
  ofOrganization('insight_heads', 'insightHead'),
  ofOrganization('insight_publications', 'insightPublications'),
  ofOrganization('insight_sources', 'insightSources'),
  ofOrganization('insight_units', 'insightUnits'),
  ofOrganization('integrations', 'integrations'),
  ofOrganization('onboardings', 'onboarding'),
  ofOrganization('organization_members', 'members'),
  ofOrganization('research_findings', 'researchFindings'),
  ofOrganization('run_requests', 'runRequests'),
  ofOrganization('runs', 'runs'),
  ofOrganization('schedules', 'schedules'),
  ofOrganization('tasks', 'tasks'),
  within('action_files', 'action_id', 'actions', 'action', 'files'),
  within('actions', 'task_id', 'tasks', 'task', 'actions'),
  within('actions', 'run_id', 'runs', 'run', 'actions'),
  within('actions', 'agent_profile_id', 'agent_profiles', 'agentProfile', 'actions'),
  within('actions', 'integration_id', 'integrations', 'integration', 'actions'),
  within('actions', 'chat_id', 'chats', 'chat', 'actions'),
  within('actions', 'message_id', 'messages', 'message', undefined),
  within('actions', 'retry_of', 'actions', 'retried', undefined),
  within('chat_attachments', 'chat_id', 'chats', 'chat', 'attachments'),
  within('dispatch_lanes', 'agent_profile_id', 'agent_profiles', 'agentProfile', 'dispatchLanes'),
  within('human_inbox_items', 'action_id', 'actions', 'action', undefined),
  within('human_inbox_items', 'task_id', 'tasks', 'task', 'humanInboxItems'),
  within('human_inbox_items', 'run_id', 'runs', 'run', undefined),
  within('human_inbox_items', 'chat_id', 'chats', 'chat', undefined),
  within('human_inbox_items', 'schedule_id', 'schedules', 'schedule', undefined),
  within('insight_compactions', 'source_id', 'insight_sources', 'source', 'compactions'),
  within('insight_connectors', 'integration_id', 'integrations', 'integration', 'insightConnector'),
  within('insight_cursors', 'source_id', 'insight_sources', 'source', 'cursors'),
  within('insight_publications', 'source_id', 'insight_sources', 'source', 'publications'),
  within('insight_segments', 'source_id', 'insight_sources', 'source', 'segments'),
  within('insight_sources', 'integration_id', 'integrations', 'integration', 'insightSources'),
  within('insight_units', 'source_id', 'insight_sources', 'source', 'units'),
  within('integration_connections', 'integration_id', 'integrations', 'integration', 'connection'),
  within('integration_context_repairs', 'integration_id', 'integrations', 'integration', 'contextRepairs'),
  within('integration_tools', 'integration_id', 'integrations', 'integration', 'tools'),
  within('messages', 'chat_id', 'chats', 'chat', 'messages'),
  within('messages', 'reply_to_message_id', 'messages', 'replyTo', 'replies'),
  within('onboardings', 'chat_id', 'chats', 'chat', 'onboarding'),
  within('run_inputs', 'run_id', 'runs', 'run', 'inputs'),
  within('run_logs', 'run_id', 'runs', 'run', 'logs'),
  within('run_outputs', 'run_id', 'runs', 'run', 'outputs'),
  within('run_requests', 'task_id', 'tasks', 'task', 'runRequests'),
  within('run_requests', 'agent_profile_id', 'agent_profiles', 'agentProfile', 'runRequests'),
  within('run_requests', 'run_id', 'runs', 'run', undefined),
  within('run_requests', 'message_id', 'messages', 'message', 'runRequests'),
  within('run_requests', 'chat_id', 'chats', 'chat', undefined),
  within('runs', 'run_request_id', 'run_requests', 'runRequest', 'runs'),
  within('runs', 'task_id', 'tasks', 'task', 'runs'),
  within('runs', 'agent_profile_id', 'agent_profiles', 'agentProfile', 'runs'),
  within('runs', 'chat_id', 'chats', 'chat', undefined),
  within('runs', 'message_id', 'messages', 'message', undefined),
  within('schedules', 'last_task_id', 'tasks', 'lastTask', undefined),
  within('task_dependencies', 'task_id', 'tasks', 'task', 'dependencies'),
  within('task_dependencies', 'depends_on_task_id', 'tasks', 'dependsOnTask', 'dependents'),
  within('task_inputs', 'task_id', 'tasks', 'task', 'inputs'),
  within('task_outcomes', 'run_id', 'runs', 'run', 'outcome'),
  within('task_outcomes', 'task_id', 'tasks', 'task', 'outcomes'),
  within('tasks', 'owner_agent_profile_id', 'agent_profiles', 'ownerAgentProfile', 'tasks'),
  within('tasks', 'parent_id', 'tasks', 'parent', 'children'),
  within('tasks', 'root_task_id', 'tasks', 'rootTask', 'hierarchy'),
  within('tasks', 'source_chat_id', 'chats', 'sourceChat', 'tasks'),
  within('tasks', 'source_message_id', 'messages', 'sourceMessage', undefined),
  within('tasks', 'active_run_id', 'runs', 'activeRun', undefined),
  within('tasks', 'created_by_run_id', 'runs', 'createdByRun', undefined),
  within('tasks', 'failure_origin_id', 'tasks', 'failureOrigin', undefined),
  within('tasks', 'schedule_id', 'schedules', 'schedule', undefined),
  {
    table: 'insight_units',
    columns: ['organization_id', 'integration_id'],
    references: 'insight_connectors',
    referenced: ['organization_id', 'integration_id'],
    field: 'connector',
    back: 'units',
  },
  {
    table: 'context_documents',
    columns: ['organization_id', 'scope', 'revision'],
    references: 'context_revisions',
    referenced: ['organization_id', 'scope', 'revision'],
    field: 'contextRevision',
    back: 'documents',
  },
  {
    table: 'context_publications',
    columns: ['organization_id', 'scope', 'revision'],
    references: 'context_revisions',
    referenced: ['organization_id', 'scope', 'revision'],
    field: 'contextRevision',
    back: 'publications',
  },
];
