import t from 'tap';
import { ACTION_DECISIONS, ACTION_KINDS, ACTION_RECONCILIATIONS, ACTION_STATUSES } from '../api/actions/states.ts';
import { PROFILE_KINDS, PROFILE_STATUSES } from '../api/agent_profiles/schema.ts';
import { ACTOR_KINDS, OUTCOMES } from '../api/audit/schema.ts';
import { CHAT_STATUSES } from '../api/chats/schema.ts';
import { SOURCE_KINDS, SOURCE_ORIGINS, SOURCE_STATUSES } from '../api/context/sources.ts';
import { INBOX_KINDS, INBOX_STATUSES } from '../api/human_inbox/schema.ts';
import { MESSAGE_ROLES, MESSAGE_STATUSES } from '../api/messages/schema.ts';
import { ONBOARDING_STATUSES, RESEARCH_STATUSES } from '../api/onboardings/schema.ts';
import { MEMBER_ROLES } from '../api/organization_members/schema.ts';
import { DEPARTMENTS, ORGANIZATION_STATUSES } from '../api/organizations/schema.ts';
import { LOG_CATEGORIES, LOG_STATUSES } from '../api/runs/logs.ts';
import { INPUT_ROLES, LOG_STATES, RUN_KINDS, RUN_MODES, RUN_STATUSES } from '../api/runs/schema.ts';
import { SCHEDULE_OVERLAPS, SCHEDULE_STATUSES } from '../api/schedules/schema.ts';
import { outcomeStagedSchema } from '../api/task_outcomes/schema.ts';
import { TASK_KINDS, TASK_PHASES, TASK_STATUSES } from '../api/tasks/schema.ts';
import { CONTEXT_SCOPES, DOCUMENT_KINDS } from '../engine/context/document.ts';
import { ASSESSMENTS } from '../engine/context/health_report.ts';
import {
  INSIGHT_CURSOR_MODES,
  INSIGHT_ENVIRONMENTS,
  INSIGHT_UNIT_MODES,
  INSIGHT_UNIT_STATES,
} from '../engine/insight_states.ts';
import {
  ACCESS_MODES,
  CONNECTION_KINDS,
  DISCOVERY_STATUSES,
  GATEWAY_KINDS,
  INTEGRATION_STATUSES,
  OAUTH_RESULTS,
  READINESSES,
  REPAIR_STATUSES,
  TOOL_EFFECTS,
  TOOL_RISKS,
} from '../engine/integration_states.ts';
import { valuesOfDomains } from './support/catalog_rules.ts';
import { openSql } from './support/transitions.ts';

const sql = await openSql(t);

/** Each domain, and the values that the code knows of it. */
const inCode: Readonly<Record<string, readonly string[]>> = {
  action_decision: ACTION_DECISIONS,
  action_kind: ACTION_KINDS,
  action_reconciliation: ACTION_RECONCILIATIONS,
  action_status: ACTION_STATUSES,
  agent_profile_kind: PROFILE_KINDS,
  agent_profile_status: PROFILE_STATUSES,
  audit_actor_kind: ACTOR_KINDS,
  audit_outcome: OUTCOMES,
  chat_status: CHAT_STATUSES,
  context_assessment: ASSESSMENTS,
  context_document_kind: DOCUMENT_KINDS,
  context_scope: CONTEXT_SCOPES,
  context_source_kind: SOURCE_KINDS,
  context_source_origin: SOURCE_ORIGINS,
  context_source_status: SOURCE_STATUSES,
  department: DEPARTMENTS,
  human_inbox_item_kind: INBOX_KINDS,
  human_inbox_item_status: INBOX_STATUSES,
  insight_cursor_mode: INSIGHT_CURSOR_MODES,
  insight_environment: INSIGHT_ENVIRONMENTS,
  insight_unit_mode: INSIGHT_UNIT_MODES,
  insight_unit_state: INSIGHT_UNIT_STATES,
  integration_access_mode: ACCESS_MODES,
  integration_connection_kind: CONNECTION_KINDS,
  integration_discovery_status: DISCOVERY_STATUSES,
  integration_effect: TOOL_EFFECTS,
  integration_gateway_kind: GATEWAY_KINDS,
  integration_oauth_result: OAUTH_RESULTS,
  integration_repair_status: REPAIR_STATUSES,
  integration_risk: TOOL_RISKS,
  integration_status: INTEGRATION_STATUSES,
  message_role: MESSAGE_ROLES,
  message_status: MESSAGE_STATUSES,
  onboarding_status: ONBOARDING_STATUSES,
  organization_member_role: MEMBER_ROLES,
  organization_status: ORGANIZATION_STATUSES,
  research_status: RESEARCH_STATUSES,
  run_input_role: INPUT_ROLES,
  run_kind: RUN_KINDS,
  run_log_category: LOG_CATEGORIES,
  run_log_state: LOG_STATES,
  run_log_status: LOG_STATUSES,
  run_mode: RUN_MODES,
  run_status: RUN_STATUSES,
  schedule_overlap: SCHEDULE_OVERLAPS,
  schedule_status: SCHEDULE_STATUSES,
  task_kind: TASK_KINDS,
  task_outcome_kind: outcomeStagedSchema.shape.kind.options,
  task_phase: TASK_PHASES,
  task_status: TASK_STATUSES,
};
/** Known to SQL alone: no answer of the API shows them. */
const OF_SQL = [
  'human_inbox_item_purpose',
  'integration_reauthorization_reason',
  'research_finding_origin',
  'run_finish_call',
  'run_request_state',
  'task_identifier_scope',
];

t.test('each state has the same values in the database and in the code', async (test) => {
  const domains = await valuesOfDomains(sql);
  test.same(Object.keys(domains).sort(), [...Object.keys(inCode), ...OF_SQL].sort(), 'every domain is listed here');
  for (const [domain, values] of Object.entries(inCode)) test.same(values, domains[domain], domain);
});

t.test('how far an integration is has the values that the database computes', async (test) => {
  const { rows } = await sql.owner.query(
    `select prosrc from pg_proc where oid = 'app.integration_readiness(app.integrations, app.integration_connections)'::regprocedure`,
  );
  const computed = [...String(rows[0].prosrc).matchAll(/(?:then|else) '(\w+)'/g)].map(([, value]) => value);
  test.same(computed.sort(), [...READINESSES].sort());
});

t.test(
  'a migration adds a value as sql/README.md says: it is used at once, and by sessions that wrote before',
  async (test) => {
    const session = await sql.owner.connect();
    test.teardown(() => session.release());
    const insert = (status: string) => ({
      name: 'insert_probe',
      text: 'insert into app.probes (status) values ($1) returning status',
      values: [status],
    });
    await session.query(`create domain app.probe_status as text constraint probe_status_check check (value in ('a', 'b'));
    create table app.probes (status app.probe_status not null)`);
    await session.query(insert('a'));
    await test.rejects(session.query(insert('c')), { code: '23514', constraint: 'probe_status_check' });
    await sql.owner.query(`begin;
    alter domain app.probe_status drop constraint probe_status_check;
    alter domain app.probe_status add constraint probe_status_check check (value in ('a', 'b', 'c'));
    update app.probes set status = 'c';
    commit`);
    test.match((await session.query(insert('c'))).rows, [{ status: 'c' }]);
    await test.rejects(session.query(insert('d')), { code: '23514', constraint: 'probe_status_check' });
  },
);
