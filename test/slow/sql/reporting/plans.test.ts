import t from 'tap';
import { connected, createAnalyst, openReporting } from '../../../support/analysts.ts';
import { createTestOrganization, type TestOrganization } from '../../../support/fixtures.ts';
import { inboxRow, multiply, runRow, taskRow } from '../../../support/reporting_fixtures.ts';

const sql = await openReporting(t);
const orgs: TestOrganization[] = [];
for (let index = 0; index < 20; index += 1) {
  const org = await createTestOrganization(sql);
  orgs.push(org);
  const completed = { completed_at: '2026-06-01T00:00:00Z' };
  const initiative = await taskRow(sql, org, { ...completed, kind: 'initiative' });
  const below = { parent_id: initiative, root_task_id: initiative, depth: 1 };
  const task = await taskRow(sql, org, { ...completed, ...below });
  await runRow(sql, org, { task_id: task, started_at: '2026-06-01T00:00:00Z' });
  await inboxRow(sql, org, { task_id: task, created_at: '2026-06-01T00:00:00Z' });
}
// The same new ids wherever a row is named.
const next = (column: string) => `md5(${column}::text || n)::uuid`;
const id = next('id');
const numbered = { identifier_number: 'identifier_number + n * 100000', dedupe_key: `${id}::text` };
// Initiatives of 50 tasks, and many without any: then the planner expects much below each one, and few runs of an organization.
const tree = { id, root_task_id: next('root_task_id'), parent_id: 'md5(parent_id::text || (n % 10 + 1))::uuid' };
await multiply(sql, 'tasks', 500, { ...tree, ...numbered }, ['created_at', 'completed_at']);
const times = ['created_at', 'started_at', 'finished_at'];
const request = { run_request_id: next('run_request_id'), task_id: next('task_id') };
await multiply(sql, 'runs', 500, { id, ...request }, times);
await multiply(sql, 'run_requests', 500, { id, task_id: next('task_id') }, ['created_at']);
await multiply(sql, 'human_inbox_items', 500, { id }, ['created_at']);
await sql.owner.query('vacuum analyze');

const [org] = orgs;
const organizationId = org?.organizationId ?? '';

type Node = Readonly<{ 'Node Type': string; 'Relation Name'?: string; 'Index Cond'?: string; Plans?: readonly Node[] }>;

function nodes(node: Node): readonly Node[] {
  return [node, ...(node.Plans ?? []).flatMap(nodes)];
}

async function plan(url: string, query: string): Promise<readonly Node[]> {
  return connected(url, async (client) => {
    const { rows } = await client.query(`explain (format json) ${query}`);
    return nodes(rows[0]['QUERY PLAN'][0].Plan);
  });
}

/** Which tables are read from one end to the other. */
function whole(plans: readonly Node[]): string[] {
  const names = plans.filter((node) => node['Node Type'] === 'Seq Scan').map((node) => node['Relation Name'] ?? '');
  // These have a row a tenant, or fewer: reading them is the plan.
  return names.filter((name) => !['organizations', 'agent_profiles', 'analysts', 'analyst_grants'].includes(name));
}

function conditions(plans: readonly Node[]): string {
  return plans.map((node) => node['Index Cond'] ?? '').join('\n');
}

const all = await createAnalyst(t, sql, { all: true });
const one = await createAnalyst(t, sql, { organizationIds: [organizationId] });
const BIG = ['tasks', 'runs', 'run_requests', 'inbox_items'];
const SUMMARIES = [
  'throughput_by_day',
  'cost_by_initiative',
  'cost_outside_initiatives',
  'waiting_for_people',
  'contract_failures',
  'queue_waits',
];

t.test('a filter by organization reaches the indexes, through the views and through their sums', async (test) => {
  for (const view of [...BIG, ...SUMMARIES]) {
    const plans = await plan(all.url, `select * from ${view} where organization_id = '${organizationId}'`);
    test.same(whole(plans), [], view);
    test.match(conditions(plans), `organization_id = '${organizationId}'::uuid`, view);
  }
});

t.test(
  'what is below an initiative is found by the indexes of parents and of tasks, not in all that there is',
  async (test) => {
    for (const url of [all.url, one.url]) {
      const plans = await plan(url, `select * from cost_by_initiative where organization_id = '${organizationId}'`);
      for (const [table, condition] of [
        ['tasks', 'parent_id = '],
        ['runs', 'task_id = '],
      ] as const) {
        test.match(conditions(plans.filter((node) => node['Relation Name'] === table)), condition, table);
      }
      test.notOk(plans.some((node) => node['Node Type'] === 'Hash'));
    }
  },
);

t.test('a login of one organization reads by index without saying which', async (test) => {
  for (const view of [...BIG, ...SUMMARIES.filter((name) => name !== 'cost_by_initiative')]) {
    test.same(whole(await plan(one.url, `select * from ${view}`)), [], view);
  }
});

t.test('a filter by time reaches the indexes too', async (test) => {
  const since = `organization_id = '${organizationId}' and created_at >= '2026-05-31'`;
  const queries = {
    tasks: since,
    runs: `kind = 'task' and ${since}`,
    inbox_items: `status = 'open' and ${since}`,
  };
  for (const [view, where] of Object.entries(queries)) {
    const plans = await plan(all.url, `select * from ${view} where ${where}`);
    test.match(conditions(plans), /created_at >= /, view);
  }
});

t.test('what is not asked for is not read: the request of a run, the start of a request', async (test) => {
  const runs = await plan(
    all.url,
    `select run_id, duration_seconds from runs where organization_id = '${organizationId}'`,
  );
  test.notOk(runs.some((node) => node['Relation Name'] === 'run_requests'));
  const requests = await plan(
    all.url,
    `select run_request_id, state from run_requests where organization_id = '${organizationId}'`,
  );
  test.notOk(requests.some((node) => node['Relation Name'] === 'runs'));
});
