import { z } from 'zod';
import {
  completeRun,
  dispatchAll,
  make,
  pull,
  type Run,
  setWorkDispatch,
  stageOutcome,
  startRun,
  updateOrganization,
  updateProfile,
} from '../fixtures.ts';
import { respond } from '../inbox_fixtures.ts';
import { Refusal } from '../transitions.ts';
import { endActions } from './action_operations.ts';
import { Violation, type World } from './world.ts';

const ROUNDS = 60;
const LIMITS = { maxConcurrentRuns: 50, maxTaskDepth: 50, maxInitiativeDescendants: 10_000 };

async function unlessRefused<T>(call: () => Promise<T>): Promise<T | undefined> {
  try {
    return await call();
  } catch (error) {
    if (error instanceof Refusal) return undefined;
    throw error;
  }
}

/** A run that does what it should. */
async function carryOut({ sql }: World, run: Run): Promise<void> {
  const { rows } = await sql.owner.query<{ mode: string }>('select mode from app.runs where id = $1', [run.runId]);
  const mode = rows[0]?.mode;
  if (mode === 'plan') await stageOutcome(sql, run, { kind: 'plan', operations: [make('one')] });
  if (mode === 'verify') {
    await stageOutcome(sql, run, { kind: 'verification', verdict: 'passed', summary: '', evidence: [] });
  }
  await completeRun(sql.api, run, { result: { kind: 'completed', summary: 'Done', artifacts: [] } });
}

/** People answer every question so that work goes on. @returns how many there were. */
async function respondToAll({ sql }: World, organizationId: string): Promise<number> {
  const { rows } = await sql.owner.query<{ id: string; options: string[] }>(
    `select id, options from app.human_inbox_items
     where organization_id = $1 and kind = 'question' and status = 'open' and purpose <> 'prerequisite'`,
    [organizationId],
  );
  for (const { id, options } of rows) {
    const said = ['raise', 'accept'].find((one) => options.includes(one)) ?? options[0] ?? 'go on';
    // One answer may end the question of another task.
    await unlessRefused(() => respond(sql.api, { organizationId }, id, said));
  }
  return rows.length;
}

const taskSchema = z.object({
  id: z.string(),
  name: z.string(),
  status: z.enum(['pending', 'blocked', 'running', 'waiting', 'completed', 'failed', 'cancelled']),
  parent_id: z.string().nullable(),
  later: z.boolean(),
  needs: z.array(z.string()),
  told: z.boolean(),
  causes: z.unknown(),
});

/** What is open, and why nobody could be blamed for that: a time to come, or a prerequisite that a person ended. */
async function checkEnds({ sql }: World, organizationId: string): Promise<void> {
  const { rows } = await sql.owner.query(
    `select t.id, t.identifier_scope || '-' || t.identifier_number as name, t.status, t.parent_id,
       coalesce(t.scheduled_at > now(), false) as later,
       array(select d.depends_on_task_id from app.task_dependencies d where d.organization_id = t.organization_id
         and d.task_id = t.id and d.required) as needs,
       exists (select 1 from app.human_inbox_items i where i.organization_id = t.organization_id and i.task_id = t.id
         and i.status = 'open' and i.purpose = 'prerequisite') as told,
       app.task_causes(t.organization_id, t) as causes
     from app.tasks t where t.organization_id = $1`,
    [organizationId],
  );
  const tasks = z.array(taskSchema).parse(rows);
  const over = new Set(tasks.filter(({ status }) => status === 'failed' || status === 'cancelled').map(({ id }) => id));
  const open = tasks.filter(({ id, status }) => status !== 'completed' && !over.has(id));
  const excused = new Set(open.filter(({ later }) => later).map(({ id }) => id));
  for (let before = -1; before < excused.size; ) {
    before = excused.size;
    for (const one of open) {
      const waits = one.needs.some((id) => over.has(id) || excused.has(id));
      if (waits || open.some((child) => child.parent_id === one.id && excused.has(child.id))) excused.add(one.id);
    }
  }
  const ended = open.filter(({ id }) => !excused.has(id));
  if (ended.length > 0) throw new Violation(`a dead end: ${JSON.stringify(ended)}`);
  const untold = open.filter(({ needs, told }) => !told && needs.some((id) => over.has(id)));
  if (untold.length > 0) throw new Violation(`a dead end that nobody was told of: ${JSON.stringify(untold)}`);
}

/**
 * Whatever happened before: once all may run, workers do their work and people answer, everything comes to its end, save
 * for what waits for a time to come or for a task that a person or a failure ended, which people were told of.
 * @throws Violation for a task that nothing moves on
 */
export async function drain(world: World): Promise<void> {
  const { api, owner } = world.sql;
  for (const { organizationId, profiles } of world.tenants) {
    await updateOrganization(api, profiles[0], { status: 'active', config: { limits: LIMITS } });
    await setWorkDispatch(api, profiles[0], false);
    for (const profile of profiles) {
      await updateProfile(api, profile, { status: 'enabled', config: { maxConcurrentRuns: 50 } });
    }
    // The workers of before are gone.
    await owner.query(
      `update app.run_requests set lease_expires_at = clock_timestamp() - interval '1 second'
       where organization_id = $1 and state in ('leased', 'started')`,
      [organizationId],
    );
    let moved = 1;
    for (let round = 0; moved > 0; round += 1) {
      if (round === ROUNDS) throw new Violation('work that never comes to its end');
      await dispatchAll(world.sql);
      await owner.query(
        `update app.run_requests set due_at = clock_timestamp() where organization_id = $1 and state = 'queued'`,
        [organizationId],
      );
      await dispatchAll(world.sql);
      moved = (await respondToAll(world, organizationId)) + (await endActions(world, organizationId));
      for (const claim of await pull(api, { organizationIds: [organizationId], limit: 50 })) {
        moved += 1;
        // A sibling's start may have used up the budget, or its end have closed the hierarchy.
        const run = await unlessRefused(() => startRun(api, claim));
        if (run) await carryOut(world, run);
      }
    }
    await checkEnds(world, organizationId);
  }
}
