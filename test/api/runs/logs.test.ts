import { randomUUID } from 'node:crypto';
import t from 'tap';
import type { RunLogPage } from '../../../api/runs/logs.ts';
import {
  expectSuccess,
  type Fields,
  fingerprint,
  ownerPath,
  refusalOf,
  runTask,
  sqlOf,
  workerOf,
} from '../../support/api_fixtures.ts';
import { startTestApp } from '../../support/app.ts';
import { createTestOrganization, logEntry } from '../../support/fixtures.ts';

const app = await startTestApp(t);
const sql = sqlOf(app);
const org = await createTestOrganization(sql);

type Query = Readonly<Record<string, string | number>>;
const read = (runId: string, query: Query = {}) =>
  app.owner.get<RunLogPage>(ownerPath(org, `/runs/${runId}/logs`), { query });

/** Sequences of a page, and which way there are more. */
async function page(runId: string, query: Query = {}) {
  const { items, pagination } = expectSuccess(await read(runId, query));
  const { oldestSequence, newestSequence, hasOlder, hasNewer } = pagination;
  const sequences = items.map((item) => item.sequence);
  if (sequences[0] !== undefined && (sequences[0] !== oldestSequence || sequences.at(-1) !== newestSequence)) {
    throw new Error(`the page and its bounds differ: ${JSON.stringify(pagination)}`);
  }
  return { sequences, hasOlder, hasNewer };
}

t.test('an entry is kept as it was sent', async (t) => {
  const run = await runTask(app, org);
  const worker = workerOf(app, run);
  t.match(await page(run.runId), { sequences: [], hasOlder: false, hasNewer: false });
  t.match((await read(run.runId)).data, {
    runStatus: 'starting',
    logState: 'not_recorded',
    pagination: { oldestSequence: null, newestSequence: null },
  });
  const entry = {
    sequence: 0,
    category: 'tool',
    status: 'running',
    label: 'Größe prüfen 🚀',
    detail: 'Line “one”',
    occurredAt: '2026-01-02T03:04:05.678+02:00',
  };
  const { detail: _, ...bare } = { ...entry, sequence: 7, status: 'skipped', category: 'sync' };
  t.same(expectSuccess(await worker.logs([entry, bare])), { status: 'starting' });
  const { data } = await read(run.runId);
  t.same(data, {
    runStatus: 'starting',
    logState: 'recording',
    items: [
      { ...entry, occurredAt: '2026-01-02T01:04:05.678Z' },
      { ...bare, detail: '', occurredAt: '2026-01-02T01:04:05.678Z' },
    ],
    pagination: { oldestSequence: 0, newestSequence: 7, hasOlder: false, hasNewer: false },
  });
  expectSuccess(await worker.complete(undefined, { logState: 'complete' }));
  t.match((await read(run.runId)).data, { runStatus: 'succeeded', logState: 'complete' });
});

t.test('pages ascend: the latest by default, or what is before or after a sequence', async (t) => {
  const run = await runTask(app, org);
  const worker = workerOf(app, run);
  const all = Array.from({ length: 230 }, (_, n) => n * 2);
  for (let at = 0; at < all.length; at += 100) {
    expectSuccess(await worker.logs(all.slice(at, at + 100).map((sequence) => logEntry(sequence))));
  }
  const part = (start: number, end?: number) => all.slice(start, end);
  t.same(await page(run.runId), { sequences: part(-50), hasOlder: true, hasNewer: false });
  t.same(await page(run.runId, { limit: 100 }), { sequences: part(-100), hasOlder: true, hasNewer: false });
  t.same(await page(run.runId, { limit: 1 }), { sequences: [458], hasOlder: true, hasNewer: false });
  t.same(await page(run.runId, { before: 360, limit: 3 }), {
    sequences: [354, 356, 358],
    hasOlder: true,
    hasNewer: true,
  });
  t.same(await page(run.runId, { before: 6 }), { sequences: [0, 2, 4], hasOlder: false, hasNewer: true });
  t.same(await page(run.runId, { before: 0 }), { sequences: [], hasOlder: false, hasNewer: true });
  t.same(await page(run.runId, { before: 5, limit: 2 }), { sequences: [2, 4], hasOlder: true, hasNewer: true });
  t.same(await page(run.runId, { after: 7, limit: 2 }), { sequences: [8, 10], hasOlder: true, hasNewer: true });
  t.same(await page(run.runId, { after: 452 }), { sequences: [454, 456, 458], hasOlder: true, hasNewer: false });
  t.same(await page(run.runId, { after: 458 }), { sequences: [], hasOlder: true, hasNewer: false });
  t.same(await page(run.runId, { after: 9999 }), { sequences: [], hasOlder: true, hasNewer: false });

  const walked: number[] = [];
  for (let before: number | undefined; ; before = walked[0]) {
    const { sequences, hasOlder } = await page(run.runId, { limit: 100, ...(before === undefined ? {} : { before }) });
    walked.unshift(...sequences);
    if (!hasOlder) break;
  }
  t.same(walked, all, 'back to the beginning, each once');
  expectSuccess(await worker.complete());
});

t.test('queries of a log are checked', async (t) => {
  const run = await runTask(app, org);
  const other = await createTestOrganization(sql);
  t.equal(refusalOf(await read(run.runId, { before: 3, after: 1 })), '400 validation_failed before_with_after');
  const wrong: Query[] = [
    { limit: 0 },
    { limit: 101 },
    { limit: 'x' },
    { before: -1 },
    { before: 1.5 },
    { after: 'x' },
  ];
  for (const query of [...wrong, { after: '' }, { cursor: 'x' }, { before: '99999999999999999999' }]) {
    t.match(refusalOf(await read(run.runId, query)), '400 validation_failed', JSON.stringify(query));
  }
  t.equal(refusalOf(await read(randomUUID())), '404 run_not_found');
  t.equal(refusalOf(await app.owner.get(ownerPath(other, `/runs/${run.runId}/logs`))), '404 run_not_found');
  expectSuccess(await workerOf(app, run).complete());
});

t.test('the largest sequence that is taken can also be paged by', async (t) => {
  const run = await runTask(app, org);
  const worker = workerOf(app, run);
  const largest = 999_999_999_999_999;
  expectSuccess(await worker.logs([logEntry(largest)]));
  t.same(await page(run.runId, { before: largest }), { sequences: [], hasOlder: false, hasNewer: true });
  t.match(refusalOf(await worker.logs([logEntry(largest + 1)])), '400 validation_failed');
  expectSuccess(await worker.complete());
});

t.test('a batch sent again is harmless, and one that differs is refused whole', async (t) => {
  const run = await runTask(app, org);
  const worker = workerOf(app, run);
  const batch = [logEntry(1), logEntry(2)];
  expectSuccess(await worker.logs(batch));
  expectSuccess(await worker.logs(batch));
  expectSuccess(await worker.logs([logEntry(2), logEntry(3)]));
  t.same((await page(run.runId)).sequences, [1, 2, 3]);
  t.equal(refusalOf(await worker.logs([logEntry(4), logEntry(2, 'another')])), '409 run_lease_expired differs');
  t.same((await page(run.runId)).sequences, [1, 2, 3], 'nothing of it is kept');
  expectSuccess(await worker.complete());
});

const credentials: Readonly<Record<string, string>> = {
  'a bearer token': 'Authorization: Bearer abcdefghijklmnopqrstuvwxyz',
  'a private key': '-----BEGIN RSA PRIVATE KEY-----',
  'a key with a known prefix': 'key sk-abcdefghijklmnop1234',
  'a GitHub token': `ghp_${'a1'.repeat(18)}`,
  'a cloud key': 'AKIAABCDEFGHIJKLMNOP',
  'a web token': 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.sig',
  'a web token behind hyphens': 'run-eyJ-eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.',
  'a password in a URL': 'postgres://user:secret@host/db',
  'a password in the second URL of a text': 'url=http://example.com/a:b,git+ssh://user:secret@host/db',
  'a named secret': 'api_key=abcdef123456',
};

t.test('text that carries a credential is refused with its whole batch, and shows nowhere', async (t) => {
  const run = await runTask(app, org);
  const worker = workerOf(app, run);
  const before = await fingerprint(app);
  for (const [name, text] of Object.entries(credentials)) {
    for (const field of ['label', 'detail']) {
      const reply = await worker.logs([logEntry(1), { ...logEntry(2), [field]: text }]);
      t.match([reply.status, reply.body.error.issues?.[0]?.path], [400, `entries.1.${field}`], `${name} as ${field}`);
      t.notOk(JSON.stringify(reply.body).includes(text), 'the response does not repeat it');
    }
  }
  t.equal(await fingerprint(app), before);
  t.notOk(app.logged.some((line) => Object.values(credentials).some((text) => JSON.stringify(line).includes(text))));
  expectSuccess(await worker.logs([logEntry(1)]));
  expectSuccess(await worker.complete());
});

t.test('only six fields, of one line each, within bounds', async (t) => {
  const run = await runTask(app, org);
  const worker = workerOf(app, run);
  const before = await fingerprint(app);
  const wrong: Readonly<Record<string, Fields>> = {
    'raw output': { output: 'x' },
    reasoning: { reasoning: 'x' },
    'an unknown category': { category: 'thinking' },
    'an unknown status': { status: 'ok' },
    'an empty label': { label: '' },
    'a long label': { label: 'x'.repeat(201) },
    'a long detail': { detail: 'x'.repeat(2001) },
    'two lines': { detail: 'a\nb' },
    'a carriage return': { label: 'a\rb' },
    'an escape': { detail: '\u001b[31mred' },
    NUL: { label: 'a\0b' },
    'a C1 control': { label: 'a\u0085b' },
    'a line separator': { detail: 'a\u2028b' },
    'half a surrogate': { detail: '\udc00' },
    'a negative sequence': { sequence: -1 },
    'a broken sequence': { sequence: 1.5 },
    'a sequence as text': { sequence: '1' },
    'no time': { occurredAt: undefined },
    'a time without zone': { occurredAt: '2026-01-01T00:00:00' },
    'a null detail': { detail: null },
  };
  for (const [name, fields] of Object.entries(wrong)) {
    const reply = await worker.logs([logEntry(1), { ...logEntry(2), ...fields }]);
    t.match([reply.status, reply.code], [400, 'validation_failed'], name);
  }
  t.match(refusalOf(await worker.logs([])), '400 validation_failed', 'no entries');
  t.match(refusalOf(await worker.logs(Array.from({ length: 101 }, (_, n) => logEntry(n)))), '400 validation_failed');
  t.match(refusalOf(await worker.logs([logEntry(1), logEntry(1)])), '400 validation_failed', 'a sequence twice');
  t.match(refusalOf(await worker.post('logs', { entries: logEntry(1) })), '400 validation_failed', 'no array');
  t.match(refusalOf(await worker.post('logs', { entries: [logEntry(1)], more: 1 })), '400 validation_failed');
  t.equal(await fingerprint(app), before, 'nothing of any of it is kept');
  const widest = { ...logEntry(1), label: '字'.repeat(200), detail: '字'.repeat(2000) };
  expectSuccess(await worker.logs([widest]));
  expectSuccess(await worker.complete());
  t.equal((await read(run.runId)).data.logState, 'complete', 'a log ends with its run, also when nobody says so');
});

t.test('after 10,000 entries the rest is dropped, and the log says so', async (t) => {
  const run = await runTask(app, org);
  const worker = workerOf(app, run);
  const batch = (start: number, size = 100) => Array.from({ length: size }, (_, n) => logEntry(start + n, 'x'));
  for (let start = 0; start < 9_900; start += 100) expectSuccess(await worker.logs(batch(start)));
  expectSuccess(await worker.logs(batch(9_900, 60)));
  t.equal((await read(run.runId)).data.logState, 'recording');
  t.same(expectSuccess(await worker.logs(batch(9_950))), { status: 'starting' }, 'it is no error of the worker');
  const { data } = await read(run.runId);
  t.equal(data.logState, 'truncated');
  t.equal(data.pagination.newestSequence, 9_999);
  expectSuccess(await worker.logs(batch(20_000)));
  expectSuccess(await worker.logs(batch(0)));
  t.equal((await read(run.runId)).data.pagination.newestSequence, 9_999);
  expectSuccess(await worker.complete(undefined, { logState: 'complete' }));
  t.equal((await read(run.runId)).data.logState, 'truncated', 'whatever the worker says');
});

t.test('a run that was cancelled tells its worker so with the log, and keeps the entries', async (t) => {
  const run = await runTask(app, org);
  const worker = workerOf(app, run);
  await app.owner.post(ownerPath(org, `/tasks/${run.taskId}/cancel`));
  t.same(expectSuccess(await worker.logs([logEntry(1)])), { status: 'cancelling' });
  t.same((await page(run.runId)).sequences, [1]);
  t.same(expectSuccess(await worker.fail()), { status: 'cancelled' });
  t.equal(refusalOf(await worker.logs([logEntry(2)])), '409 run_lease_expired lease_lost');
});
