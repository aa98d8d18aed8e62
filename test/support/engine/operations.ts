import { adminDecides } from '../audit_fixtures.ts';
import {
  addDependency,
  cancelTask,
  capability,
  completeRun,
  createTask,
  dispatchAll,
  endLease,
  expire,
  failRun,
  heartbeat,
  make,
  markRunning,
  patchTask,
  pull as pullRequests,
  type Run,
  releaseClaim,
  retryTask,
  setWorkDispatch,
  stageOutcome,
  startRun,
  updateOrganization,
  updateProfile,
} from '../fixtures.ts';
import { createItem, respond } from '../inbox_fixtures.ts';
import type { JsonObject } from '../transitions.ts';
import { mustRefuse, newRunId, underLease, Violation, type World, waitForWorkers } from './world.ts';

/** The next of the random numbers of a step: below `limit`, or one of a list. */
export type Picks = Readonly<{ number: (limit: number) => number; of: <T>(list: readonly T[]) => T | undefined }>;
export type Operation = (world: World, picks: Picks) => Promise<unknown>;

/** Mostly one of the latest, which can still do something. */
function recent<T>(picks: Picks, list: readonly T[]): T | undefined {
  return picks.number(6) === 0 ? picks.of(list) : list.at(-1 - picks.number(Math.min(4, list.length || 1)));
}

function somewhere(world: World, picks: Picks) {
  const tenant = picks.of(world.tenants) ?? world.tenants[0];
  if (!tenant) throw new Error('a world without organizations');
  return { tenant, org: picks.of(tenant.profiles) ?? tenant.profiles[0] };
}

const create: Operation = async (world, picks) => {
  const { tenant, org } = somewhere(world, picks);
  const own = world.tasks.filter((task) => task.tenant === tenant);
  const parent =
    picks.number(3) > 0
      ? recent(
          picks,
          own.filter((task) => task.initiative),
        )
      : undefined;
  const before = picks.number(3) === 0 ? recent(picks, own) : undefined;
  const initiative = picks.number(5) === 0;
  const budget = {
    maxAgentRuns: 1 + picks.number(5),
    maxReplans: picks.number(2),
    maxAttemptsPerPhase: 2,
    ...(picks.number(4) === 0 ? { maxTokens: 30 } : {}),
    ...(picks.number(4) === 0 ? { maxCostMinorUnits: 20 } : {}),
  };
  const task = await createTask(world.sql, org, {
    kind: initiative ? 'initiative' : 'task',
    ...(parent ? { parentId: parent.id } : {}),
    ...(before ? { dependsOn: [before.id] } : {}),
    ...(picks.number(12) === 0 ? { scheduledAt: '2999-01-01T00:00:00Z' } : {}),
    priority: picks.number(3),
    spec: { budget, ...(picks.number(4) === 0 ? { verification: 'agent' } : {}) },
  });
  world.tasks.push({ tenant, id: task.id, initiative });
};

/** Enough at once to fill every place. */
const many: Operation = async (world, picks) => {
  const { tenant, org } = somewhere(world, picks);
  for (let n = 0; n < 4; n += 1) {
    const task = await createTask(world.sql, org, { spec: { budget: { maxAttemptsPerPhase: 2 } } });
    world.tasks.push({ tenant, id: task.id, initiative: false });
  }
};

const depend: Operation = async (world, picks) => {
  const [a, b] = [recent(picks, world.tasks), recent(picks, world.tasks)];
  if (!a || !b) return;
  const call = () => addDependency(world.sql.api, a.tenant.profiles[0], a.id, b.id, { required: picks.number(5) > 0 });
  await (a.tenant === b.tenant ? call() : mustRefuse('an edge to another organization', call));
};

const pull: Operation = async (world, picks) => {
  const { tenant } = somewhere(world, picks);
  const explained = world.paired ? undefined : await waitForWorkers(world, tenant);
  const got = await pullRequests(world.sql.api, {
    organizationIds: [tenant.organizationId],
    limit: 1 + picks.number(5),
  });
  for (const claim of got) {
    for (const old of world.claims) if (old.runRequestId === claim.runRequestId) world.dead.add(old.leaseToken);
    if (claim.organizationId !== tenant.organizationId) throw new Violation('a claim of another organization');
    if (explained && !explained.includes(claim.task.id)) throw new Violation('handed out, but explained otherwise');
  }
  if (explained && explained.length > 0 && got.length === 0) throw new Violation('explained as ready, not handed out');
  world.claims.push(...got);
};

const start: Operation = async (world, picks) => {
  const fresh = world.claims.filter(
    (claim) => !world.started.has(claim.leaseToken) && !world.dead.has(claim.leaseToken),
  );
  const claim = picks.number(5) > 0 ? recent(picks, fresh) : recent(picks, world.claims);
  if (!claim) return;
  const runId = newRunId();
  const run = await underLease(world, claim, () => startRun(world.sql.api, claim, { runId }));
  if (run.attempt > 2) throw new Violation('more attempts than the task allows');
  if (world.started.has(claim.leaseToken)) throw new Violation('one claim was started as two runs');
  world.started.set(claim.leaseToken, runId);
  world.runs.push(run);
};

/** What a run of this mode hands in: a plan of a few tasks, or a verdict. */
async function handIn(world: World, run: Run, picks: Picks): Promise<void> {
  const { rows } = await world.sql.owner.query<{ mode: string; below: string[] }>(
    `select u.mode, array(select c.id from app.tasks c where c.organization_id = u.organization_id
       and c.parent_id = u.task_id) as below
     from app.runs u where u.organization_id = $1 and u.id = $2`,
    [run.organizationId, run.runId],
  );
  const [{ mode, below } = { mode: '', below: [] }] = rows;
  if (mode === 'verify') {
    const verdict = picks.number(5) > 1 ? 'passed' : 'failed';
    await stageOutcome(world.sql, run, { kind: 'verification', verdict, summary: verdict, evidence: [] });
  }
  if (mode !== 'plan') return;
  const operations: JsonObject[] = [make('a', { kind: picks.number(6) === 0 ? 'initiative' : 'task' })];
  if (picks.number(2) === 0) operations.push(make('b', { dependsOn: ['a'] }));
  const one = picks.of(below);
  if (one && picks.number(3) === 0) operations.push({ op: 'cancel_task', task: one });
  await stageOutcome(world.sql, run, { kind: 'plan', operations });
}

/** A run that is under way, as far as the worker knows; now and then any. */
function someRun(world: World, picks: Picks): Run | undefined {
  const open = world.runs.filter((run) => !world.finished.has(run.runId) && !world.dead.has(run.leaseToken));
  return picks.number(3) > 0 ? recent(picks, open) : recent(picks, world.runs);
}

function report(picks: Picks): JsonObject {
  if (picks.number(3) === 0) return {};
  const costMinorUnits = picks.number(15);
  return {
    usage: { inputTokens: picks.number(20), outputTokens: 1, ...(costMinorUnits > 3 ? { costMinorUnits } : {}) },
  };
}

const RESULTS: readonly JsonObject[] = [
  { kind: 'completed', summary: 'Done', artifacts: [] },
  { kind: 'completed', summary: 'Done', artifacts: [] },
  { kind: 'completed', summary: 'Done', artifacts: [] },
  { kind: 'needs_input', question: 'Which one?', options: [] },
  { kind: 'waiting', until: '2020-01-01T00:00:00Z', reason: '' },
];

async function finish(world: World, run: Run, call: () => Promise<unknown>): Promise<void> {
  await underLease(world, run, call);
  world.finished.add(run.runId);
  world.dead.add(run.leaseToken);
}

const complete: Operation = async (world, picks) => {
  const run = someRun(world, picks);
  if (!run) return;
  if (!world.finished.has(run.runId) && picks.number(8) > 0) await handIn(world, run, picks);
  const result = picks.of(RESULTS) ?? {};
  await finish(world, run, () =>
    completeRun(world.sql.api, run, { result, report: report(picks), bodyHash: JSON.stringify(result) }),
  );
};

const fail: Operation = async (world, picks) => {
  const run = someRun(world, picks);
  if (!run) return;
  const retryable = picks.number(3) > 0;
  await finish(world, run, () => failRun(world.sql.api, run, { retryable, report: report(picks), backoffSeconds: 0 }));
};

const beat: Operation = async (world, picks) => {
  const run = someRun(world, picks);
  if (!run) return;
  await underLease(world, run, () => (picks.number(2) ? heartbeat : markRunning)(world.sql.api, run));
  if (world.deadBefore.has(run.leaseToken)) throw new Violation('a finished run still beats');
};

const lapse: Operation = async (world, picks) => {
  const run = picks.number(2) ? recent(picks, world.runs) : undefined;
  const held = run ?? recent(picks, world.claims);
  if (!held) return;
  const { rows } = await world.sql.owner.query<{ current: boolean }>(
    `select state in ('leased', 'started') and fence = $3 as current from app.run_requests
     where organization_id = $1 and id = $2`,
    [held.organizationId, held.runRequestId, Number(held.leaseToken.split('.')[0])],
  );
  if (!rows[0]?.current) return;
  await endLease(world.sql, held);
  world.dead.add(held.leaseToken);
  const { api } = world.sql;
  await mustRefuse('a lapsed lease', () => (run ? heartbeat(api, run) : startRun(api, held)));
  if (picks.number(3) > 0) await expire(world.sql.jobs, held, { backoffSeconds: 0 });
};

const release: Operation = async (world, picks) => {
  const claim = recent(picks, world.claims);
  if (!claim || world.started.has(claim.leaseToken)) return;
  await releaseClaim(world.sql.api, claim);
  world.dead.add(claim.leaseToken);
};

const cancel: Operation = async (world, picks) => {
  const initiatives = world.tasks.filter((one) => one.initiative);
  const task = recent(picks, picks.number(2) && initiatives.length > 0 ? initiatives : world.tasks);
  if (!task) return;
  const run = picks.number(3) === 0 ? recent(picks, world.runs) : undefined;
  const call = () =>
    cancelTask(world.sql.api, task.tenant.profiles[0], task.id, run ? capability(run.executionToken) : undefined);
  const useless = run && (world.deadBefore.has(run.leaseToken) || run.organizationId !== task.tenant.organizationId);
  await (useless ? mustRefuse('a capability that is over or of another organization', call) : call());
};

const retry: Operation = async (world, picks) => {
  const task = recent(picks, world.tasks);
  if (task) await retryTask(world.sql.api, task.tenant.profiles[0], task.id);
};

const patch: Operation = async (world, picks) => {
  const task = recent(picks, world.tasks);
  if (!task) return;
  const changes: readonly JsonObject[] = [
    { priority: picks.number(3) },
    { spec: { budget: { maxAgentRuns: 1 + picks.number(9) } } },
    { spec: { budget: { maxReplans: picks.number(3) }, objective: 'Another' } },
    { ownerAgentProfileId: picks.of(task.tenant.profiles)?.profileId },
    { scheduledAt: null },
    { spec: { budget: { maxTokens: 10 + picks.number(50), maxCostMinorUnits: null } } },
  ];
  await patchTask(world.sql, task.tenant.profiles[0], task.id, picks.of(changes) ?? {});
};

const question: Operation = async (world, picks) => {
  const task = recent(picks, world.tasks);
  if (task) await createItem(world.sql.api, task.tenant.profiles[0], task.id, { blocking: picks.number(4) > 0 });
};

const answer: Operation = async (world, picks) => {
  const { rows } = await world.sql.owner.query<{ organization_id: string; id: string; options: string[] }>(
    `select organization_id, id, options from app.human_inbox_items
     where organization_id = any ($1) and kind = 'question' order by status = 'open' desc, created_at desc limit 5`,
    [world.tenants.map((tenant) => tenant.organizationId)],
  );
  const item = picks.of(rows);
  if (!item) return;
  const response = picks.of(item.options) ?? 'this one';
  await respond(world.sql.api, { organizationId: item.organization_id }, item.id, response);
  await mustRefuse('a second answer', () =>
    respond(world.sql.api, { organizationId: item.organization_id }, item.id, response),
  );
};

const trespass: Operation = async (world, picks) => {
  const task = recent(picks, world.tasks);
  const other = world.tenants.find((tenant) => tenant !== task?.tenant)?.profiles[0];
  if (!task || !other) return;
  const { api } = world.sql;
  await mustRefuse('a cancel from outside', () => cancelTask(api, other, task.id));
  await mustRefuse('a retry from outside', () => retryTask(api, other, task.id));
  await mustRefuse('a prerequisite outside', () => createTask(world.sql, other, { dependsOn: [task.id] }));
  await mustRefuse('a parent outside', () => createTask(world.sql, other, { parentId: task.id }));
  const run = recent(
    picks,
    world.runs.filter((one) => one.organizationId === task.tenant.organizationId),
  );
  const { organizationId } = other;
  if (run) await mustRefuse('a run from outside', () => completeRun(api, { ...run, organizationId }));
};

const profile: Operation = (world, picks) => {
  const { org } = somewhere(world, picks);
  const changes = [
    { status: 'disabled' },
    { status: 'enabled' },
    { config: { maxConcurrentRuns: 1 + picks.number(3) } },
  ];
  return updateProfile(world.sql.api, org, picks.of(changes) ?? {});
};

const organization: Operation = (world, picks) => {
  const { org } = somewhere(world, picks);
  const limits = { maxConcurrentRuns: 1 + picks.number(4) };
  const changes = [{ status: 'suspended' }, { status: 'active' }, { status: 'active' }, { config: { limits } }];
  return updateOrganization(world.sql.api, org, picks.of(changes) ?? {});
};

const stop: Operation = (world, picks) =>
  setWorkDispatch(world.sql.api, somewhere(world, picks).org, picks.number(2) === 0);

/** An administrator takes a request away from whoever holds it: no lease of it that there was is good for anything. */
const administer: Operation = async (world, picks) => {
  const held = picks.number(2) ? recent(picks, world.runs) : recent(picks, world.claims);
  if (!held) return;
  const { organizationId, runRequestId } = held;
  const known = world.claims.filter((claim) => claim.runRequestId === runRequestId);
  const force = { maxAttempts: 2, backoffSeconds: 0, backoffMaxSeconds: 0 };
  const id = { runRequestId };
  await (picks.number(2)
    ? adminDecides(world.sql.admin, 'lease_expire', organizationId, { ...id, ...force })
    : adminDecides(world.sql.admin, 'run_request_requeue', organizationId, id));
  for (const { leaseToken } of known) world.dead.add(leaseToken);
};

/** By weight: how often each is taken. */
export const OPERATIONS: Readonly<Record<string, readonly [weight: number, operation: Operation]>> = {
  create: [16, create],
  many: [3, many],
  depend: [4, depend],
  pull: [14, pull],
  start: [14, start],
  complete: [14, complete],
  fail: [5, fail],
  beat: [3, beat],
  lapse: [6, lapse],
  release: [2, release],
  cancel: [4, cancel],
  retry: [4, retry],
  patch: [5, patch],
  question: [2, question],
  answer: [5, answer],
  trespass: [2, trespass],
  profile: [2, profile],
  organization: [2, organization],
  stop: [2, stop],
  administer: [3, administer],
  dispatch: [5, (world) => dispatchAll(world.sql)],
};
