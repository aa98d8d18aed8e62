import {
  actionOf,
  approve,
  grantGateway,
  jobOf,
  makeOverdue,
  passTime,
  proposeAction,
  reject,
} from '../action_fixtures.ts';
import { completeRun, type Run, updateOrganization } from '../fixtures.ts';
import { type JsonObject, transition } from '../transitions.ts';
import type { Operation, Picks } from './operations.ts';
import { type ActionOfWorld, mustRefuse, underLease, Violation, type World } from './world.ts';

/** Mostly one of the latest, which can still do something. */
function recent<T>(picks: Picks, list: readonly T[]): T | undefined {
  return picks.number(6) === 0 ? picks.of(list) : list.at(-1 - picks.number(Math.min(4, list.length || 1)));
}

type Facts = Readonly<{ status: string; requires_approval: boolean; decision: string | null; look_up_count: number }>;

async function factsOf({ sql }: World, { id }: ActionOfWorld): Promise<Facts | undefined> {
  const { rows } = await sql.owner.query<Facts>(
    'select status, requires_approval, decision, look_up_count from app.actions where id = $1',
    [id],
  );
  return rows[0];
}

const tenantOf = (world: World, { organizationId }: Run) =>
  world.tenants.find((tenant) => tenant.organizationId === organizationId);

const propose: Operation = async (world, picks) => {
  const run = recent(
    picks,
    world.runs.filter(({ runId }) => !world.finished.has(runId)),
  );
  const tenant = run && tenantOf(world, run);
  if (!run || !tenant) return;
  const by = await grantGateway(world.sql, tenant.profiles[0], tenant.integration, run);
  const { id } = actionOf(
    await proposeAction(world.sql.api, by, {
      arguments: { amount: picks.number(4) },
      ...(picks.number(8) === 0 ? { repeat: true } : {}),
    }),
  );
  if (!world.actions.some((one) => one.id === id)) world.actions.push({ tenant, id });
};

const decide: Operation = async (world, picks) => {
  const action = recent(picks, world.actions);
  if (!action) return;
  const [own, other] = [action.tenant, world.tenants.find((tenant) => tenant !== action.tenant)];
  const verb = picks.number(3) > 0 ? approve : reject;
  if (other) await mustRefuse('a decision from outside', () => verb(world.sql.api, other, action.id));
  await verb(world.sql.api, own, action.id);
};

const expire: Operation = async (world, picks) => {
  const action = recent(picks, world.actions);
  if (!action) return;
  await makeOverdue(world.sql, action.id);
  const { organizationId } = action.tenant;
  if (picks.number(2)) {
    await transition(world.sql.jobs, 'actions_expire', { organizationId, actionIds: [action.id] });
    return;
  }
  const waits = !world.paired && (await factsOf(world, action))?.status === 'awaiting_approval';
  const call = () => approve(world.sql.api, action.tenant, action.id);
  await (waits ? mustRefuse('a decision that comes too late', call) : call());
};

const lease: Operation = async (world, picks) => {
  const action = recent(picks, world.actions);
  if (!action) return;
  const job = jobOf(world.sql.jobs, action.tenant, action.id);
  const { leased } = await job.lease();
  if (leased) world.actionJobs.push({ action, job });
};

/** The intent: it is committed once, by one job, and only with the approval that it needs. */
const begin: Operation = async (world, picks) => {
  const held = recent(picks, world.actionJobs);
  if (!held) return;
  const { action, job } = held;
  const { begun } = await job.begin();
  if (!begun) return;
  const before = world.begun.get(action.id);
  if (before !== undefined && before !== job.leaseId) throw new Violation('an action was begun twice');
  world.begun.set(action.id, job.leaseId);
  const facts = await factsOf(world, action);
  if (facts?.requires_approval && facts.decision !== 'approved') throw new Violation('begun without its approval');
};

const report: Operation = async (world, picks) => {
  const held = recent(picks, world.actionJobs);
  if (!held) return;
  const { action, job } = held;
  const facts = await factsOf(world, action);
  if (!facts) return;
  const outcomes = facts.look_up_count > 0 ? ['found', 'absent', 'none'] : ['succeeded', 'failed'];
  const outcome = picks.of(outcomes) ?? '';
  const error = { code: 'provider_failed', message: 'No' };
  await job.finish(outcome, outcome === 'failed' ? { error } : { result: {} });
  const over = ['succeeded', 'failed', 'rejected', 'expired', 'cancelled', 'not_executed'];
  const after = await factsOf(world, action);
  if (!world.paired && over.includes(facts.status) && after?.status !== facts.status) {
    throw new Violation(`a report made ${after?.status} of ${facts.status}`);
  }
};

const release: Operation = async (world, picks) => recent(picks, world.actionJobs)?.job.release(0);

const pass: Operation = async (world, picks) => {
  const action = recent(picks, world.actions);
  if (!action) return;
  const { owner } = world.sql;
  await owner.query('update app.actions set look_up_until = now() where id = $1 and look_up_count > 1', [action.id]);
  await passTime(world.sql, action.id);
};

const reconcile: Operation = async (world, picks) => {
  const { rows } = await world.sql.owner.query<{ id: string }>(
    `select id from app.actions where id = any ($1) and status = 'unknown'`,
    [world.actions.map(({ id }) => id)],
  );
  const found = picks.of(rows)?.id;
  const action = picks.number(5) > 0 ? world.actions.find(({ id }) => id === found) : recent(picks, world.actions);
  if (!action) return;
  const outcome = picks.of(['succeeded', 'failed', 'not_executed']) ?? 'failed';
  const { organizationId } = action.tenant;
  const actor = { kind: 'owner', by: 'ada' };
  await transition(world.sql.api, 'action_reconcile', {
    organizationId,
    actionId: action.id,
    outcome,
    note: 'Seen',
    actor,
  });
};

/** A run ends, and its task waits for actions: its own, now and then those of another. */
const wait: Operation = async (world, picks) => {
  const run = recent(
    picks,
    world.runs.filter(({ runId }) => !world.finished.has(runId)),
  );
  if (!run) return;
  const { rows } = await world.sql.owner.query<{ id: string }>(
    'select id from app.actions where task_id = $1 order by created_at desc limit 3',
    [run.taskId],
  );
  const foreign = picks.number(6) === 0 ? recent(picks, world.actions) : undefined;
  const actionIds = [...new Set([...rows.map(({ id }) => id), ...(foreign ? [foreign.id] : [])])];
  if (actionIds.length === 0) return;
  const result: JsonObject = { kind: 'waiting', reason: 'They have to be done', actionIds };
  await underLease(world, run, () => completeRun(world.sql.api, run, { result, bodyHash: JSON.stringify(result) }));
  world.finished.add(run.runId);
  world.dead.add(run.leaseToken);
};

const require: Operation = async (world, picks) => {
  const tenant = picks.of(world.tenants);
  const approvalRequiredForRisk = picks.number(2) ? ['external', 'high'] : [];
  if (tenant) await updateOrganization(world.sql.api, tenant.profiles[0], { constraints: { approvalRequiredForRisk } });
};

/** By weight: how often each is taken. */
export const ACTION_OPERATIONS: Readonly<Record<string, readonly [weight: number, operation: Operation]>> = {
  'propose an action': [9, propose],
  'decide about an action': [5, decide],
  'expire an action': [1, expire],
  'lease an action': [5, lease],
  'begin an action': [5, begin],
  'report of an action': [4, report],
  'give an action back': [1, release],
  'let time pass for an action': [4, pass],
  'reconcile an action': [2, reconcile],
  'wait for actions': [4, wait],
  'change what needs an approval': [1, require],
};

/** People decide, jobs execute and find out, until no action of an organization is open. @returns how many moved */
export async function endActions(world: World, organizationId: string): Promise<number> {
  const { rows } = await world.sql.owner.query<{ id: string; status: string }>(
    `select id, status from app.actions where organization_id = $1
       and status in ('awaiting_approval', 'approved', 'executing', 'unknown') order by id`,
    [organizationId],
  );
  for (const { id, status } of rows) {
    const place = { organizationId };
    if (status === 'awaiting_approval') await reject(world.sql.api, place, id);
    if (status === 'unknown') {
      const said = { outcome: 'not_executed', note: 'Seen', actor: { kind: 'owner', by: 'ada' } };
      await transition(world.sql.api, 'action_reconcile', { organizationId, actionId: id, ...said });
    }
    if (status !== 'approved' && status !== 'executing') continue;
    await passTime(world.sql, id);
    const job = jobOf(world.sql.jobs, place, id);
    const { leased, purpose } = await job.lease();
    if (!leased) continue;
    if (purpose === 'look_up') await job.finish('absent');
    else if ((await job.begin())['begun']) await job.finish('succeeded', { result: {} });
  }
  return rows.length;
}
