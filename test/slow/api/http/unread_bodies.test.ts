import { execFile, spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { Worker } from 'node:worker_threads';
import t from 'tap';
import { ownerPath, sqlOf } from '../../../support/api_fixtures.ts';
import { SERVICE_TOKEN, startTestApp } from '../../../support/app.ts';
import type { FetchRounds } from '../../../support/fetch_rounds.ts';
import { createTestOrganization } from '../../../support/fixtures.ts';
import { rawConnection, statusesOf } from '../../../support/raw_connection.ts';
import { until } from '../../../support/wait.ts';

/** What clients were seen to miss, the 413 of a body over the limit, is tried most often. */
const roundsOf = (outcome: string) => (outcome.startsWith('413 ') ? 50 : 10);
const MIB = 1024 * 1024;
/** More than the server reads after a response here, and more than lies between the two. */
const LARGE = 24 * MIB;

const app = await startTestApp(t, { config: { logLevel: 'silent' }, timing: { restBytes: 4 * MIB } });
const org = await createTestOrganization(sqlOf(app));
const runId = randomUUID();
const json = { 'content-type': 'application/json' };
const octets = { 'content-type': 'application/octet-stream' };
const lease = { 'x-organization-id': org.organizationId, 'x-lease-token': '1.x' };
const service = { authorization: `Bearer ${SERVICE_TOKEN}` };

type Refusal = Readonly<{
  method: string;
  path: string;
  headers: Readonly<Record<string, string>>;
  outcome: string;
}>;

const refusals: Readonly<Record<string, Refusal>> = {
  'JSON over the limit': {
    ...{ method: 'POST', path: ownerPath(org, '/tasks'), headers: json },
    outcome: '413 payload_too_large',
  },
  'an output without a lease': {
    ...{ method: 'PUT', path: `/internal/runs/${runId}/outputs/a.bin`, headers: { ...octets, ...lease, ...service } },
    outcome: '409 run_lease_expired',
  },
  'an output without a token': {
    ...{ method: 'PUT', path: `/internal/runs/${runId}/outputs/a.bin`, headers: { ...octets, ...lease } },
    outcome: '401 agent_unauthorized',
  },
  'an input of no task': {
    ...{ method: 'PUT', path: ownerPath(org, '/tasks/T-1/inputs/a.bin'), headers: octets },
    outcome: '404 task_not_found',
  },
  'an unknown path': { method: 'POST', path: '/nowhere', headers: json, outcome: '404 not_found' },
  'another method': {
    ...{ method: 'PUT', path: ownerPath(org, '/tasks'), headers: json },
    outcome: '405 method_not_allowed',
  },
  'another type': {
    ...{ method: 'POST', path: ownerPath(org, '/tasks'), headers: { 'content-type': 'text/csv' } },
    outcome: '415 unsupported_media_type',
  },
};
const cases = Object.entries(refusals).flatMap(([name, refusal]) =>
  (['length', 'chunked'] as const).map((framing) => {
    // With so long a body its length is what is refused first, where it may have less.
    const outcome = framing === 'length' && name === 'another type' ? '413 payload_too_large' : refusal.outcome;
    return { name: `${name}, ${framing}`, framing, ...refusal, outcome };
  }),
);

for (const { name, framing, method, path: target, headers, outcome } of cases) {
  t.test(`fetch reads the refusal each time: ${name}`, async (t) => {
    const given: FetchRounds = {
      ...{ url: `${app.url}${target}`, method, headers, bytes: LARGE, framing },
      rounds: roundsOf(outcome),
      between: `${app.url}/healthz`,
    };
    const worker = new Worker(new URL('../../../support/fetch_rounds.ts', import.meta.url), { workerData: given });
    const [outcomes] = await once(worker, 'message');
    await worker.terminate();
    t.same(outcomes, { [outcome]: roundsOf(outcome) });
  });
}

const file = path.join(tmpdir(), `runner-large-${process.pid}`);
const handle = await open(file, 'w');
await handle.truncate(LARGE);
await handle.close();
t.teardown(() => rm(file));

const run = promisify(execFile);
const withoutCurl = spawnSync('curl', ['--version']).status === 0 ? false : 'the machine has no curl';

/** What curl says of one request: the response, and its own exit code where that is not 0. */
async function curl({ method, path: target, headers }: Refusal, framing: 'length' | 'chunked'): Promise<string> {
  const fields = { ...headers, expect: '', ...(framing === 'chunked' ? { 'transfer-encoding': 'chunked' } : {}) };
  const lines = Object.entries(fields).flatMap(([field, value]) => [
    '-H',
    value === '' ? `${field}:` : `${field}: ${value}`,
  ]);
  const given = ['-sS', ...lines, '-X', method, '-T', file, `${app.url}${target}`];
  try {
    const { error, statusCode } = JSON.parse((await run('curl', given)).stdout);
    return `${statusCode} ${error.code}`;
  } catch (error) {
    return (
      String((error as Error).message)
        .split('\n')
        .at(-2) ?? ''
    );
  }
}

/** A process each: of each kind one. */
const byCurl = ['JSON over the limit', 'an output without a lease', 'an unknown path'];
for (const { name, framing, ...refusal } of cases.filter((one) => byCurl.some((kind) => one.name.startsWith(kind)))) {
  t.test(`curl reads the refusal each time: ${name}`, { skip: withoutCurl }, async (t) => {
    const outcomes: Record<string, number> = {};
    for (let round = 0; round < roundsOf(refusal.outcome); round += 1) {
      const outcome = await curl(refusal, framing);
      outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
    }
    t.same(outcomes, { [refusal.outcome]: roundsOf(refusal.outcome) });
  });
}

for (const { name, framing, method, path: target, headers, outcome } of cases) {
  t.test(`a socket reads the refusal each time: ${name}`, async (t) => {
    const whole = Buffer.alloc(LARGE);
    const lines = Object.entries({ host: new URL(app.url).host, ...headers }).map(
      ([field, value]) => `${field}: ${value}`,
    );
    const length = framing === 'length' ? `content-length: ${LARGE}` : 'transfer-encoding: chunked';
    const outcomes: Record<string, number> = {};
    for (let round = 0; round < roundsOf(outcome); round += 1) {
      const client = rawConnection(app.url);
      client.send([`${method} ${target} HTTP/1.1`, ...lines, length, '', ''].join('\r\n'));
      if (framing === 'chunked') client.send(`${LARGE.toString(16)}\r\n`);
      client.send(whole);
      await until('it is over', () => client.ended() || client.closed());
      const { error } = JSON.parse(client.received().split('\r\n\r\n')[1] ?? '{}');
      const result = `${statusesOf(client.received())} ${error?.code}${client.error() ? `, ${client.error()?.code}` : ''}`;
      outcomes[result] = (outcomes[result] ?? 0) + 1;
      client.socket.destroy();
    }
    t.same(outcomes, { [outcome]: roundsOf(outcome) });
  });
}
