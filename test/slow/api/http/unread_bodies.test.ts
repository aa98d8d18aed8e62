import { execFile, spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { Worker } from 'node:worker_threads';
import t from 'tap';
import { ATTACHMENT_MAX_BYTES } from '../../../../api/chat_attachments/schema.ts';
import { UPLOAD_MAX_BYTES } from '../../../../api/files/stored_file.ts';
import { SOURCE_MAX_BYTES } from '../../../../api/onboardings/source.ts';
import { ownerPath, sqlOf } from '../../../support/api_fixtures.ts';
import { SERVICE_TOKEN, startTestApp } from '../../../support/app.ts';
import { createChat, createChatOrganization } from '../../../support/chat_fixtures.ts';
import type { FetchRounds } from '../../../support/fetch_rounds.ts';
import { rawConnection, statusesOf } from '../../../support/raw_connection.ts';
import { until } from '../../../support/wait.ts';

const MIB = 1024 * 1024;
/** More than the server reads after a response here, and more than lies between the two. */
const LARGE = 24 * MIB;

const app = await startTestApp(t, { config: { logLevel: 'silent' }, timing: { restBytes: 4 * MIB } });
const org = await createChatOrganization(sqlOf(app));
const chat = await createChat(sqlOf(app), org);
const runId = randomUUID();
const json = { 'content-type': 'application/json' };
const octets = { 'content-type': 'application/octet-stream' };
const lease = { 'x-organization-id': org.organizationId, 'x-lease-token': '1.x' };
const service = { authorization: `Bearer ${SERVICE_TOKEN}` };

type Framing = 'length' | 'chunked';
type Refusal = Readonly<{
  method: string;
  path: string;
  headers: Readonly<Record<string, string>>;
  outcome: string;
  /** Of the body: default LARGE. */
  bytes?: number;
  /** Default: both. Chunked, a body over its limit comes up to there: no gibibyte, and no 50 MiB twice. */
  framings?: readonly Framing[];
}>;

const attached = new URLSearchParams({ fileName: 'a.txt', mediaType: 'text/plain' });
const described = new URLSearchParams({ kind: 'file', fileName: 'a.txt', mediaType: 'text/plain' });
const refusals: Readonly<Record<string, Refusal>> = {
  'JSON over the limit': {
    method: 'POST',
    path: ownerPath(org, '/tasks'),
    headers: json,
    outcome: '413 payload_too_large',
  },
  'an output without a lease': {
    method: 'PUT',
    path: `/internal/runs/${runId}/outputs/a.bin`,
    headers: { ...octets, ...lease, ...service },
    outcome: '409 run_lease_expired',
  },
  'an output without a token': {
    method: 'PUT',
    path: `/internal/runs/${runId}/outputs/a.bin`,
    headers: { ...octets, ...lease },
    outcome: '401 agent_unauthorized',
  },
  'an input of no task': {
    method: 'PUT',
    path: ownerPath(org, '/tasks/T-1/inputs/a.bin'),
    headers: octets,
    outcome: '404 task_not_found',
  },
  'an unknown path': { method: 'POST', path: '/nowhere', headers: json, outcome: '404 not_found' },
  'another method': {
    method: 'PUT',
    path: ownerPath(org, '/tasks'),
    headers: json,
    outcome: '405 method_not_allowed',
  },
  'another type': {
    method: 'POST',
    path: ownerPath(org, '/tasks'),
    headers: { 'content-type': 'text/csv' },
    outcome: '415 unsupported_media_type',
  },
  'an attachment over the limit': {
    method: 'PUT',
    path: ownerPath(org, `/chats/${chat.id}/attachments/${randomUUID()}?${attached}`),
    headers: octets,
    bytes: ATTACHMENT_MAX_BYTES + LARGE,
    outcome: '413 attachment_invalid',
  },
  'a source over the limit': {
    method: 'PUT',
    path: ownerPath(org, `/onboarding/sources/${randomUUID()}?${described}`),
    headers: octets,
    bytes: SOURCE_MAX_BYTES + LARGE,
    framings: ['length'],
    outcome: '413 request_failed',
  },
  'an input over the limit': {
    method: 'PUT',
    path: ownerPath(org, '/tasks/T-1/inputs/a.bin'),
    headers: octets,
    bytes: UPLOAD_MAX_BYTES + LARGE,
    framings: ['length'],
    outcome: '413 payload_too_large',
  },
};
const cases = Object.entries(refusals).flatMap(([name, refusal]) =>
  (refusal.framings ?? (['length', 'chunked'] as const)).map((framing) => {
    // With so long a body its length is what is refused first, where it may have less.
    const outcome = framing === 'length' && name === 'another type' ? '413 payload_too_large' : refusal.outcome;
    return { name: `${name}, ${framing}`, framing, bytes: LARGE, ...refusal, outcome };
  }),
);
type Case = (typeof cases)[number];

/** What clients were seen to miss, the 413 of a body over the limit, is tried most often. */
const roundsOf = ({ outcome }: Case) => (outcome.startsWith('413 ') ? 50 : 10);
/** Of one that is over the limit after 50 MiB alone, fewer: the socket tries it as often, and needs a quarter of the time. */
const fewerRoundsOf = (one: Case) => (one.framing === 'chunked' && one.bytes > LARGE ? 10 : roundsOf(one));

/** Outcomes, with how often there was each. */
function countsOf(outcomes: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const outcome of outcomes) counts[outcome] = (counts[outcome] ?? 0) + 1;
  return counts;
}

for (const one of cases) {
  const { name, framing, method, path: target, headers, bytes, outcome } = one;
  const rounds = fewerRoundsOf(one);
  t.test(`fetch reads the refusal each time: ${name}`, async (t) => {
    const given: FetchRounds = {
      url: `${app.url}${target}`,
      method,
      headers,
      bytes,
      framing,
      rounds,
      between: `${app.url}/healthz`,
    };
    const worker = new Worker(new URL('../../../support/fetch_rounds.ts', import.meta.url), { workerData: given });
    const [outcomes] = await once(worker, 'message');
    await worker.terminate();
    t.same(outcomes, { [outcome]: rounds });
  });
}

const file = path.join(tmpdir(), `runner-large-${process.pid}`);
await writeFile(file, '');
t.teardown(() => rm(file));

const run = promisify(execFile);
const withoutCurl = spawnSync('curl', ['--version']).status === 0 ? false : 'the machine has no curl';

/** What curl says of each request: the response, and what went wrong with it. One process for all: its start is what takes long. */
async function curl({ method, path: target, headers, framing }: Case, rounds: number): Promise<string[]> {
  const fields = { ...headers, expect: '', ...(framing === 'chunked' ? { 'transfer-encoding': 'chunked' } : {}) };
  const lines = Object.entries(fields).flatMap(([field, value]) => [
    '-H',
    value === '' ? `${field}:` : `${field}: ${value}`,
  ]);
  const uploads = Array.from({ length: rounds }, () => ['-T', file, `${app.url}${target}`]).flat();
  const given = ['-s', ...lines, '-X', method, '-w', ' %{exitcode} %{errormsg}\n', ...uploads];
  // Its exit code is that of one of them.
  const { stdout } = await run('curl', given).catch((error: { stdout: string }) => error);
  return stdout
    .trimEnd()
    .split('\n')
    .map((line) => {
      const [, body = '', failure] = /^(.*) (?:0|(\d+ .*))$/.exec(line.trimEnd()) ?? [];
      if (!body) return failure ?? line;
      const { error, statusCode } = JSON.parse(body);
      return `${statusCode} ${error.code}${failure ? `, then ${failure}` : ''}`;
    });
}

const byCurl = [
  'JSON over the limit',
  'an output without a lease',
  'an unknown path',
  'another type',
  'an attachment over the limit',
];
for (const one of cases.filter(({ name }) => byCurl.some((kind) => name.startsWith(kind)))) {
  t.test(`curl reads the refusal each time: ${one.name}`, { skip: withoutCurl }, async (t) => {
    await truncate(file, one.bytes);
    const rounds = fewerRoundsOf(one);
    t.same(countsOf(await curl(one, rounds)), { [one.outcome]: rounds });
  });
}

const whole = Buffer.alloc(LARGE);
for (const one of cases) {
  const { name, framing, method, path: target, headers, bytes, outcome } = one;
  t.test(`a socket reads the refusal each time: ${name}`, async (t) => {
    const lines = Object.entries({ host: new URL(app.url).host, ...headers }).map(
      ([field, value]) => `${field}: ${value}`,
    );
    const length = framing === 'length' ? `content-length: ${bytes}` : 'transfer-encoding: chunked';
    const outcomes: string[] = [];
    for (let round = 0; round < roundsOf(one); round += 1) {
      const client = rawConnection(app.url);
      client.send([`${method} ${target} HTTP/1.1`, ...lines, length, '', ''].join('\r\n'));
      if (framing === 'chunked') client.send(`${bytes.toString(16)}\r\n`);
      for (let sent = 0; sent < bytes; sent += LARGE) client.send(whole);
      await until('it is over', () => client.ended() || client.closed());
      const { error } = JSON.parse(client.received().split('\r\n\r\n')[1] ?? '{}');
      const reset = client.error() ? `, ${client.error()?.code}` : '';
      outcomes.push(`${statusesOf(client.received())} ${error?.code}${reset}`);
      client.socket.destroy();
    }
    t.same(countsOf(outcomes), { [outcome]: roundsOf(one) });
  });
}
