import { mkdtemp, rename, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import { expectSuccess, ownerPath, refusalOf, sqlOf, storedKeys } from '../../support/api_fixtures.ts';
import { startTestApp } from '../../support/app.ts';
import { spoil } from '../../support/context_files.ts';
import { complete, create, get, publish, putSource, research, start } from './support.ts';

const app = await startTestApp(t);
await publish(app);

const MiB = 1_048_576;
const png = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
);
const KINDS = [
  ['a text', 'short', {}],
  ['no text', png, { kind: 'file', fileName: 'logo.png', mediaType: 'image/png' }],
  ['a text that is too long to be quoted', 'x'.repeat(MiB + 1), {}],
] as const;

async function reviewOf(bytes: string | Uint8Array, fields: Record<string, string>) {
  const created = await create(app);
  expectSuccess(await putSource(app, created, bytes, fields), 201);
  return research(app, expectSuccess(await start(app, created)));
}

for (const [what, bytes, fields] of KINDS) {
  t.test(`${what} that changed after the review is a warning of a new one`, async (t) => {
    const review = await reviewOf(bytes, fields);
    t.same(review.review?.warnings, []);
    const [key = ''] = await storedKeys(app, review);
    await spoil(app.services.storage, key, 'another text');
    t.equal(refusalOf(await complete(app, review, { allowWarnings: true })), '409 request_failed stale');
    t.same(await storedKeys(app, review), [key], 'nothing was made of it');
    const shown = await get(app, review);
    t.match(shown, { status: 'review', sources: [{ status: 'failed' }] });
    t.match(shown.review, { warnings: [{ code: 'source_failed' }], summary: { sources: [{ usable: false }] } });
    t.not(shown.review?.sha256, review.review?.sha256);
    t.equal(refusalOf(await complete(app, shown)), '409 request_failed has_warnings');
    t.equal(expectSuccess(await complete(app, shown, { allowWarnings: true })).status, 'completed');
    const summary = expectSuccess(await app.owner.get<object>(ownerPath(review, '/context/summary')));
    t.notMatch(JSON.stringify(summary), `source-${review.sources[0]?.id}`);
  });
}

t.test('one response names all that is gone, and each of two at once finds it', async (t) => {
  const created = await create(app);
  for (const fileName of ['a.md', 'b.md']) expectSuccess(await putSource(app, created, fileName, { fileName }), 201);
  const review = await research(app, expectSuccess(await start(app, created)));
  for (const key of await storedKeys(app, review)) await app.services.storage.delete(key);
  const both = await Promise.all([complete(app, review), complete(app, review)]);
  t.match(both.map(refusalOf), [/^409 request_failed stale/, /^409 request_failed stale/]);
  const { rows } = await sqlOf(app).owner.query(
    `select status, error ->> 'code' as code from app.context_sources where organization_id = $1`,
    [review.organizationId],
  );
  t.same(rows, Array(2).fill({ status: 'failed', code: 'bytes_missing' }));
});

t.test('a folder of the storage that is a symbolic link takes nothing: 503', async (t) => {
  const created = await create(app);
  expectSuccess(await putSource(app, created, '# Plan'), 201);
  const [key = ''] = await storedKeys(app, created);
  const folder = path.join(fileURLToPath(app.config.storageUrl), path.dirname(key));
  const outside = await mkdtemp(path.join(tmpdir(), 'outside-'));
  t.teardown(() => rm(outside, { recursive: true, force: true }));
  const moved = path.join(outside, 'moved');
  await rename(folder, moved);
  await symlink(moved, folder);
  t.equal(refusalOf(await putSource(app, created, '# Other')), '503 request_failed');
  t.match(JSON.stringify(app.logged), /a symbolic link below the storage root/, 'the log says why');
  await rm(folder);
  await rename(moved, folder);
  expectSuccess(await putSource(app, created, '# Other'), 201);
});
