import { randomUUID } from 'node:crypto';
import t from 'tap';
import type { Run } from '../../../api/runs/schema.ts';
import {
  claim,
  expectSuccess,
  makeTask,
  ownerPath,
  refusalOf,
  runNext,
  runTask,
  sqlOf,
  startRun,
  workerOf,
} from '../../support/api_fixtures.ts';
import { startTestApp } from '../../support/app.ts';
import {
  createSecondProfile,
  createTestOrganization,
  endLease,
  expire,
  publishNow,
  updateProfile,
} from '../../support/fixtures.ts';
import { transition } from '../../support/transitions.ts';

const app = await startTestApp(t);
const sql = sqlOf(app);
const org = await createTestOrganization(sql, { key: 'growth', kind: 'department', department: 'growth' });
const elsewhere = await createTestOrganization(sql);

type Query = Readonly<Record<string, string | number | undefined>>;
const list = (query: Query = {}, at = org) => app.owner.get<Run[]>(ownerPath(at, '/runs'), { query });
const get = (id: string, at = org) => app.owner.get<Run>(ownerPath(at, `/runs/${id}`));

t.test('a run that has only started says little, and nothing that is not true', async (t) => {
  const run = await runTask(app, org);
  const { createdAt, updatedAt, startedAt, ...rest } = expectSuccess(await get(run.runId));
  t.same(rest, {
    id: run.runId,
    taskId: run.taskId,
    agentProfile: {
      id: org.profileId,
      key: 'growth',
      name: 'Profile',
      kind: 'department',
      department: 'growth',
      status: 'enabled',
    },
    attempt: 1,
    mode: 'execute',
    status: 'starting',
    logState: 'not_recorded',
    model: 'default',
    output: null,
    error: null,
    usage: { inputTokens: 0, outputTokens: 0, toolCalls: 0, costMinorUnits: 0, costKnown: false },
    finishedAt: null,
  });
  t.ok(createdAt <= updatedAt && startedAt >= createdAt);
  await workerOf(app, run).running({ model: 'large', harness: 'h' });
  t.match(await get(run.runId), { data: { status: 'running', model: 'large' } });
  expectSuccess(await workerOf(app, run).complete());
});

t.test('a finished run shows its result, its usage and what was decided', async (t) => {
  const spec = { acceptanceCriteria: [{ kind: 'output_file', path: 'r.txt' }] };
  const run = await runTask(app, org, { spec });
  const worker = workerOf(app, run);
  const stored = expectSuccess(await worker.put('r.txt', 'hello'), 201);
  const usage = { inputTokens: 12, outputTokens: 3, toolCalls: 2, costMinorUnits: 7 };
  const receipts = [{ kind: 'command', id: '1', commandHash: 'a'.repeat(64), status: 'completed', exitCode: 0 }];
  const workspaceUri = 'file:///var/lib/worker/runs/1?of=host-1#a'.padEnd(2000, 'a');
  const more = { usage, receipts, harness: 'h', workspaceUri, logState: 'complete' };
  const uri = `org://${org.organizationId}/runs/${run.runId}/outputs/r.txt`;
  const { sha256 } = stored;
  // What a worker read as evidence it may send as an artifact.
  const file = { kind: 'file', runId: run.runId, path: 'r.txt', uri, size: 5, sha256, mediaType: 'text/plain' };
  const result = { kind: 'completed', summary: 'All done', artifacts: [{ ...file, name: 'Report' }] };
  t.same(expectSuccess(await worker.complete(result, more)), { status: 'succeeded' });
  const { data } = await get(run.runId);
  const { rows } = await sql.owner.query('select workspace_uri from app.runs where id = $1', [run.runId]);
  t.same(rows, [{ workspace_uri: workspaceUri }]);
  t.match(data, { status: 'succeeded', logState: 'complete', error: null, usage: { ...usage, costKnown: true } });
  t.ok(data.finishedAt);
  t.same(data.output, {
    kind: 'task_result',
    result: {
      kind: 'completed',
      summary: 'All done',
      artifacts: [{ ...file, name: 'Report' }],
      completion: {
        version: 1,
        taskVersion: 2,
        taskGraphRevision: 1,
        completionRevision: 1,
        runIds: [run.runId],
        disposition: 'passed',
        checks: [
          {
            criterionIndex: 0,
            evaluator: 'backend',
            status: 'passed',
            summary: 'r.txt: it is stored',
            evidence: [file],
          },
        ],
      },
    },
  });
});

t.test('a failed run shows its error, and says whether the cost is known', async (t) => {
  const run = await runTask(app, org);
  const error = { code: 'no_luck', message: 'It was not meant to be', retryable: false };
  expectSuccess(await workerOf(app, run).fail(error, { usage: { costMinorUnits: 0, costKnown: false } }));
  t.match(await get(run.runId), {
    data: { status: 'failed', error, output: null, usage: { costMinorUnits: 0, costKnown: false } },
  });
});

t.test('expired and cancelled runs stay in the history, and attempts count', async (t) => {
  const first = await runTask(app, org);
  await endLease(sql, first);
  await expire(sql.jobs, first);
  t.match(await get(first.runId), { data: { status: 'expired', error: { code: 'run_lease_expired' } } });
  await publishNow(sql, org, first.taskId);
  const second = await runNext(app, org);
  t.match(await get(second.runId), { data: { attempt: 2, taskId: first.taskId } });
  await app.owner.post(ownerPath(org, `/tasks/${first.taskId}/cancel`));
  t.match(await get(second.runId), { data: { status: 'cancelled' } });
  const runs = await list({ taskId: first.taskId });
  t.same(
    runs.data.map((run) => [run.id, run.attempt, run.status]),
    [
      [second.runId, 2, 'cancelled'],
      [first.runId, 1, 'expired'],
    ],
  );
  expectSuccess(await workerOf(app, second).complete());
});

t.test('what does not exist here is not found, and ids are checked', async (t) => {
  const run = await runTask(app, elsewhere);
  for (const id of [randomUUID(), run.runId]) t.equal(refusalOf(await get(id)), '404 run_not_found');
  t.equal(refusalOf(await get(run.runId, { ...elsewhere, organizationId: randomUUID() })), '404 run_not_found');
  for (const id of ['x', 'T-1', `${run.runId}0`]) t.match(refusalOf(await get(id)), '400 validation_failed', id);
  t.equal(refusalOf(await list({}, { ...org, organizationId: randomUUID() })), '404 organization_not_found');
  expectSuccess(await workerOf(app, run).complete());
});

t.test('the list pages both ways, newest first, under each filter', async (t) => {
  const busy = await createTestOrganization(sql);
  const second = await createSecondProfile(sql, busy);
  const made: string[] = [];
  for (let n = 0; n < 7; n += 1) {
    const run = await runTask(app, n % 2 === 0 ? busy : second);
    made.unshift(run.runId);
    expectSuccess(await (n < 3 ? workerOf(app, run).fail() : workerOf(app, run).complete()));
  }
  const at = busy;
  const ids = async (query: Query) => (await list(query, at)).data.map((run) => run.id);
  t.same(await ids({}), made);
  const pages: string[][] = [];
  let cursor: string | undefined;
  do {
    const { data, body } = await list({ limit: 3, cursor }, at);
    pages.push(data.map((run) => run.id));
    cursor = body.pagination.nextCursor ?? undefined;
    if (pages.length === 2) {
      const back = await list({ limit: 3, cursor: body.pagination.previousCursor ?? '' }, at);
      t.same(
        back.data.map((run) => run.id),
        pages[0],
      );
    }
  } while (cursor);
  t.same(pages, [made.slice(0, 3), made.slice(3, 6), made.slice(6)]);
  t.same(await ids({ status: 'failed' }), made.slice(4));
  t.same(await ids({ status: 'succeeded', agentProfileId: second.profileId }), [made[1], made[3]]);
  t.same(await ids({ mode: 'execute', limit: 1 }), made.slice(0, 1));
  t.same(await ids({ mode: 'verify' }), []);
  t.same(await ids({ agentProfileId: org.profileId }), [], 'a profile of another organization');
  t.same(await ids({ taskId: randomUUID() }), []);
  const { nextCursor } = (await list({ limit: 3 }, at)).body.pagination;
  t.equal(refusalOf(await list({ cursor: nextCursor ?? '' }, elsewhere)), '400 validation_failed invalid_cursor');
  t.equal(
    refusalOf(await list({ cursor: nextCursor ?? '', status: 'failed' }, at)),
    '400 validation_failed invalid_cursor',
  );
  const wrong: Query[] = [{ status: 'done' }, { mode: 'x' }, { taskId: 'T-1' }, { agentProfileId: 'growth' }, { x: 1 }];
  for (const query of [...wrong, { limit: 0 }, { limit: 201 }]) {
    t.match(refusalOf(await list(query, at)), '400 validation_failed', JSON.stringify(query));
  }
});

t.test('a run goes on naming the profile that it ran under', async (t) => {
  const other = await createSecondProfile(sql, org, { key: 'gone' });
  const run = await runTask(app, other);
  expectSuccess(await workerOf(app, run).complete());
  await updateProfile(sql.api, other, { name: 'Renamed', status: 'disabled' });
  t.match(await get(run.runId), { data: { agentProfile: { key: 'gone', name: 'Renamed', status: 'disabled' } } });
  const args = { organizationId: org.organizationId, agentProfileId: other.profileId };
  await transition(sql.api, 'agent_profile_delete', args);
  t.match(await get(run.runId), { data: { agentProfile: { id: other.profileId, status: 'disabled' } } });
});

t.test('a claim is no run yet', async (t) => {
  const quiet = await createTestOrganization(sql);
  await makeTask(app, quiet);
  const item = await claim(app, quiet);
  t.same((await list({}, quiet)).data, []);
  const run = await startRun(app, item);
  t.same(
    (await list({}, quiet)).data.map((one) => one.id),
    [run.runId],
  );
});

t.test('the runs of a deleted organization are gone at once', async (t) => {
  const gone = await createTestOrganization(sql, { maxConcurrentRuns: 5 });
  const run = await runTask(app, gone);
  expectSuccess(await workerOf(app, run).put('a.txt', 'a'), 201);
  expectSuccess(await workerOf(app, run).completeWith('a.txt'));
  const open = await runTask(app, gone);
  await transition(sql.api, 'organization_delete', { organizationId: gone.organizationId });
  t.equal(refusalOf(await list({}, gone)), '404 organization_not_found');
  for (const rest of ['', '/context', '/logs', '/artifacts/0/content', '/context/files/content?path=a']) {
    t.equal(refusalOf(await app.owner.get(ownerPath(gone, `/runs/${run.runId}${rest}`))), '404 run_not_found', rest);
  }
  t.equal(refusalOf(await workerOf(app, open).heartbeat()), '409 run_lease_expired lease_lost');
  t.equal(refusalOf(await workerOf(app, open).complete()), '409 run_lease_expired lease_lost');
});
