import t from 'tap';
import {
  childrenOf,
  completeRun,
  createTask,
  createTestOrganization,
  make,
  runPlan,
  stageOutcome,
  type TestOrganization,
  taskRow,
  updateOrganization,
} from '../../support/fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { type JsonObject, openSql, refusal } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);

const LIMIT = 3;
const tasks = (count: number) => Array.from({ length: count }, (_, n) => make(`task-${n + 1}`));
/** Each below the one before, the last one a task. */
const chain = (levels: number) =>
  Array.from({ length: levels }, (_, n) =>
    make(`level-${n + 1}`, {
      kind: n + 1 === levels ? 'task' : 'initiative',
      ...(n === 0 ? {} : { parentKey: `level-${n}` }),
    }),
  );

/** A plan that comes to `count` of what the limit counts, and to less than the default of every other limit. */
const limits: Readonly<Record<string, Readonly<{ code: string; plan: (count: number) => JsonObject[] }>>> = {
  maxPlanOperations: { code: 'max_plan_operations', plan: tasks },
  maxInitiativeDescendants: { code: 'max_initiative_descendants', plan: tasks },
  maxTaskDepth: { code: 'max_task_depth', plan: chain },
};

/** All that a plan could have changed: the rows of the organization's tasks and edges, and the numbers given out. */
async function rowsOf(org: TestOrganization): Promise<JsonObject[]> {
  const { rows } = await sql.owner.query(
    `select to_jsonb(t) as row from app.tasks t where t.organization_id = $1
     union all select to_jsonb(d) from app.task_dependencies d where d.organization_id = $1
     union all select to_jsonb(o) from app.task_outcomes o where o.organization_id = $1
     union all select to_jsonb(i) from app.task_identifiers i where i.organization_id = $1 order by 1`,
    [org.organizationId],
  );
  return rows;
}

for (const [name, { code, plan }] of Object.entries(limits)) {
  scenario(`a plan at ${name} is applied; one beyond it is refused whole`, async (test) => {
    const org = await createTestOrganization(sql, { limits: { [name]: LIMIT } });
    const run = await runPlan(sql, org);
    const before = await rowsOf(org);
    const beyond = await refusal(stageOutcome(sql, run, { kind: 'plan', operations: plan(LIMIT + 1) }));
    test.match(beyond, { status: 409, code: 'state_conflict' });
    test.same([...new Set(beyond.issues.map((issue) => issue.code))], [code], 'for this limit alone');
    test.same(await rowsOf(org), before, 'nothing is applied, or staged');

    test.ok(await stageOutcome(sql, run, { kind: 'plan', operations: plan(LIMIT) }));
    test.same(await completeRun(sql.api, run), { status: 'succeeded' });
    const { rows } = await sql.owner.query('select id from app.tasks where organization_id = $1', [org.organizationId]);
    test.equal(rows.length, 1 + LIMIT);
  });

  scenario(`a staged plan that ${name} no longer allows is applied in no part`, async (test) => {
    const org = await createTestOrganization(sql, { limits: { [name]: LIMIT } });
    const run = await runPlan(sql, org);
    await stageOutcome(sql, run, { kind: 'plan', operations: plan(LIMIT) });
    await updateOrganization(sql.api, org, { config: { limits: { [name]: LIMIT - 1 } } });
    test.same(await completeRun(sql.api, run), { status: 'failed' });
    test.same(await childrenOf(sql, org, run.taskId), []);
    test.match(await taskRow(sql, org, run.taskId), { status: 'pending', phase: 'plan', graph_revision: 1 });
    test.match(await createTask(sql, org, { kind: 'task' }), { identifier_number: 1 }, 'and no number is used up');
  });
}
