import { createHash, randomUUID } from 'node:crypto';
import { rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ApiError, type Claim, type Lease, type LogEntry } from '../worker/api.ts';
import type { Calls } from './calls.ts';
import { createLeaseClock, type LeaseClock } from './lease_clock.ts';
import { INPUT_PATH, OUTPUT_PATH, outputContent, type Report } from './protocol.ts';
import type { Random } from './random.ts';

/** A heartbeat that got no response. */
const AGAIN_MS = 100;

export type RunTools = Readonly<{ workerId: string; scratch: string; calls: Calls; random: Random; report: Report }>;

type Run = RunTools &
  Readonly<{
    claim: Claim;
    lease: Lease;
    clock: LeaseClock;
    heartbeatIntervalMs: number;
    executionToken: string;
    /** The output will be refused: nothing was refused yet, and a task bears that once. */
    wrong: boolean;
    /** Sends no heartbeats, and comes late. */
    forgets: boolean;
    sinceStartMs: () => number;
  }>;

function violated(run: Pick<Run, 'report' | 'workerId' | 'claim'>, rule: string, what: object): void {
  const { organizationId, runRequestId, task } = run.claim;
  const place = { by: run.workerId, organizationId, runRequestId, taskId: task.id };
  run.report({ kind: 'violation', rule, what: { ...place, ...what } });
}

/** The second response has to be the first one: calls of the holder are safe to send again (docs/interface.md 4.13.1). */
function same<T>(run: Run, verb: string, [first, second]: readonly [T, T]): T {
  run.report({ kind: 'did', what: `${verb} sent twice` });
  const responses = [first, second].map((response) => JSON.stringify(response));
  if (responses[0] !== responses[1]) violated(run, 'a call sent again has the same response', { verb, responses });
  return first;
}

async function start(claim: Claim, tools: RunTools): Promise<Run> {
  const { calls, random, report, workerId } = tools;
  const runId = randomUUID();
  const twice = random.chance(0.3);
  const send = async () => {
    if (!twice) return calls.call((api, call) => api.start(claim, runId, workerId, call));
    const responses = await calls.twice((api, call) => api.start(claim, runId, workerId, call));
    report({ kind: 'did', what: 'start sent twice' });
    const [first, second] = responses;
    if (first.executionToken !== second.executionToken || first.attempt !== second.attempt) {
      violated({ claim, ...tools }, 'a call sent again has the same response', { verb: 'start', responses });
    }
    return first;
  };
  const { attempt, heartbeatIntervalMs, executionToken } = await send();
  const startedAt = performance.now();
  report({ kind: 'started', organizationId: claim.organizationId, runId, attempt });
  return {
    ...tools,
    claim,
    lease: { organizationId: claim.organizationId, leaseToken: claim.leaseToken, runId },
    // A third of the lease, rounded down.
    clock: createLeaseClock((heartbeatIntervalMs + 1) * 3),
    heartbeatIntervalMs,
    executionToken,
    wrong: claim.task.state?.['contract'] === undefined && random.chance(0.05),
    forgets: random.chance(0.12),
    sinceStartMs: () => performance.now() - startedAt,
  };
}

/** Heartbeats until it is told to stop. One that is refused changes nothing here: the next call is refused as well. */
function keepLease(run: Run): () => Promise<void> {
  const { calls, clock, lease, heartbeatIntervalMs } = run;
  const over = new AbortController();
  /** Returns the time until the next one, in ms. */
  async function beat(): Promise<number> {
    try {
      await clock.renew(() => calls.once((api, call) => api.heartbeat(lease, call)));
    } catch (error) {
      if (!(error instanceof ApiError) || error.status >= 500) return AGAIN_MS;
      if (error.reason === 'lease_lost') return heartbeatIntervalMs;
      violated(run, 'a holder is refused for a lost lease alone', { verb: 'heartbeat', message: error.message });
    }
    return heartbeatIntervalMs;
  }
  async function beats(): Promise<void> {
    for (let wait = heartbeatIntervalMs; ; wait = await beat()) {
      await sleep(wait, undefined, { signal: over.signal }).catch(() => {});
      if (over.signal.aborted) return;
    }
  }
  const beating = beats();
  return async () => {
    over.abort();
    await beating;
  };
}

/** Some time passes, mostly little. A worker that forgets its lease comes back when that is over. */
async function work({ random, report, heartbeatIntervalMs, forgets, sinceStartMs }: Run): Promise<void> {
  if (forgets) {
    report({ kind: 'did', what: 'a lease slept through' });
    // Often just before the sweep finds it: then the clock alone stands against the late one.
    const late = random.chance(0.6) ? random.between(60, 200) : random.between(200, 1_500);
    await sleep((heartbeatIntervalMs + 1) * 3 - sinceStartMs() + late);
  } else {
    await sleep(random.chance(0.2) ? random.between(500, 2_500) : random.between(20, 400));
  }
}

async function checkInput(run: Run): Promise<void> {
  const body = await run.calls.call(async (api, call) => {
    const content = await api.inputContent(run.lease, INPUT_PATH, call);
    return new Response(content).text();
  });
  const { data } = outputContent.safeParse(JSON.parse(body));
  if (data?.title !== run.claim.task.title) violated(run, 'a run is given the inputs of its task', { body });
}

type Artifact = Readonly<{ path: string; sha256: string; size: number }>;

async function upload(run: Run): Promise<Artifact> {
  const title = run.wrong ? 'wrong' : run.claim.task.title;
  const bytes = Buffer.from(JSON.stringify({ title, runId: run.lease.runId }));
  const file = path.join(run.scratch, `${run.lease.runId}.json`);
  await writeFile(file, bytes);
  try {
    const put = () => run.calls.call((api, call) => api.putOutput(run.lease, OUTPUT_PATH, file, call));
    await put();
    if (run.random.chance(0.15)) {
      await put();
      run.report({ kind: 'did', what: 'output sent twice' });
    }
  } finally {
    await rm(file, { force: true });
  }
  const sha256 = createHash('sha256').update(bytes).digest('hex');
  return { path: OUTPUT_PATH, sha256, size: bytes.byteLength };
}

async function sendLogs(run: Run): Promise<void> {
  const entries: LogEntry[] = Array.from({ length: run.random.between(1, 3) }, (_, sequence) => ({
    sequence,
    category: 'execution',
    status: 'completed',
    label: `Step ${sequence}`,
    detail: '',
    occurredAt: new Date().toISOString(),
  }));
  const send: Parameters<Calls['call']>[0] = (api, call) => api.logs(run.lease, entries, call);
  if (run.random.chance(0.3)) same(run, 'logs', await run.calls.twice(send));
  else await run.calls.call(send);
}

/** The last word on a run: sent, perhaps twice, judged against what the lease allows, and reported. */
async function finish(run: Run, artifact: Artifact): Promise<void> {
  const { calls, random, lease, clock, report } = run;
  const fails = random.chance(0.05);
  const result = { kind: 'completed', summary: 'Copied', artifacts: [artifact] };
  const body = { output: { kind: 'task_result', result }, usage: { toolCalls: 1 }, logState: 'complete' };
  const error = { code: 'chaos', message: 'The worker did not like it', retryable: true };
  const send: Parameters<typeof calls.call<string>>[0] = (api, call) =>
    fails ? api.fail(lease, { error }, call) : api.complete(lease, body, call);

  // What counts is the first try: it may have come through although its response did not.
  const begunAt = performance.now();
  const overAt = clock.overAt();
  const verb = fails ? 'fail' : 'complete';
  const status = random.chance(0.3) ? same(run, verb, await calls.twice(send)) : await calls.call(send);
  report({ kind: 'ended', organizationId: lease.organizationId, runId: lease.runId, status });
  if (begunAt > overAt) {
    violated(run, 'an expired holder changes nothing', { runId: lease.runId, status, lateMs: begunAt - overAt });
  }
  const expected = fails || run.wrong ? 'failed' : 'succeeded';
  if (status !== expected) violated(run, 'the stored bytes decide', { runId: lease.runId, status, expected });
  if (run.wrong && !fails) report({ kind: 'did', what: 'handed in a wrong output' });
  if (random.chance(0.2)) await differ(run);
  if (random.chance(0.2)) await checkCapability(run);
}

/** The end of a run cannot be rewritten: another body is refused. */
async function differ({ calls, lease, report, ...run }: Run): Promise<void> {
  const error = { code: 'chaos', message: 'Another end', retryable: false };
  try {
    const status = await calls.call((api, call) => api.fail(lease, { error }, call));
    violated({ report, ...run }, 'a differing repeat is refused', { runId: lease.runId, status });
  } catch (refusal) {
    if (!(refusal instanceof ApiError) || refusal.reason !== 'differs') throw refusal;
    report({ kind: 'did', what: 'a differing end refused' });
  }
}

async function checkCapability(run: Run): Promise<void> {
  const status = await run.calls.statusOf(run.lease.organizationId, run.executionToken);
  if (status !== 401) violated(run, 'the end of a run ends its capability', { runId: run.lease.runId, status });
}

/** One claim, from its start to its end or to the loss of its lease. */
export async function performRun(claim: Claim, tools: RunTools): Promise<void> {
  const { random, report } = tools;
  if (random.chance(0.04)) {
    report({ kind: 'did', what: 'a claim dropped' });
    return;
  }
  let stopBeating = async () => {};
  try {
    const run = await start(claim, tools);
    if (!run.forgets) stopBeating = keepLease(run);
    const body = { harness: 'chaos', model: 'none', workspaceUri: `org://${claim.organizationId}/chaos` };
    const running = await tools.calls.call((api, call) => api.running(run.lease, body, call));
    if (running !== 'running') violated(run, 'a run that is marked as running runs', { status: running });
    await checkInput(run);
    const artifact = await upload(run);
    await sendLogs(run);
    // Last, so that the word which comes too late is the one that counts.
    await work(run);
    await finish(run, artifact);
  } catch (error) {
    if (error instanceof ApiError && error.status === 409) {
      if (error.reason === 'lease_lost') report({ kind: 'did', what: 'a lease lost' });
      else violated({ claim, ...tools }, 'a holder is refused for a lost lease alone', { message: error.message });
      return;
    }
    if (error instanceof ApiError && error.status !== 503) {
      const what = { status: error.status, code: error.code, message: error.message };
      violated({ claim, ...tools }, 'a well-formed call is not refused', what);
      return;
    }
    report({ kind: 'did', what: 'a run given up without a response' });
  } finally {
    await stopBeating();
  }
}
