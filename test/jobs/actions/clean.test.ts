import { randomUUID } from 'node:crypto';
import { mkdir, rm } from 'node:fs/promises';
import path from 'node:path';
import { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import { invocationKey, organizationPrefix } from '../../../engine/storage/index.ts';
import {
  createProposer,
  createSibling,
  declaredFile,
  endedAgo,
  invocationFiles,
  propose,
} from '../../support/action_fixtures.ts';
import { openSql } from '../../support/transitions.ts';
import { until } from '../../support/wait.ts';
import { openJobs, runJob } from '../support.ts';

const sql = await openSql(t);
const jobs = await openJobs(t, sql.url);
const { storage } = jobs;
const NOTE = declaredFile('note');
const DAY_MS = 24 * 3_600_000;

async function put(key: string): Promise<string> {
  await storage.put(key, Readable.from([Buffer.from('note')]));
  return key;
}

/** As if it had been stored so long ago. */
function aged(key: string, ms: number): string {
  return key.replace(/\d{13}/, (made) => String(Number(made) - ms));
}

async function stored(organizationId: string): Promise<string[]> {
  const { objects } = await storage.list(organizationPrefix(organizationId));
  return objects.map(({ key }) => key).sort();
}

/** A run with a file that an action sends, one that none does, an upload that was begun, and a long response. */
async function world() {
  const by = await createProposer(sql);
  const { organizationId } = by.org;
  const place = (object: Parameters<typeof invocationKey>[1]) => put(invocationKey(organizationId, object));
  const keys = {
    held: await place('files'),
    left: await place('files'),
    upload: await place('uploads'),
    response: await place('responses'),
  };
  const files = invocationFiles(sql.api, by, 'send');
  const [held, left, begun] = [randomUUID(), randomUUID(), randomUUID()];
  await files.put(held, NOTE, keys.held);
  await files.put(left, NOTE, keys.left);
  await files.begin(begun, NOTE, keys.upload);
  await propose(sql, by, {
    invocationId: 'send',
    files: [{ argument: 'body', fileId: held, ...NOTE, storageKey: keys.held }],
  });
  await sql.owner.query(
    `insert into app.action_invocations (organization_id, run_id, integration_id, invocation_id, body_sha256, lease_id,
       response_key) values ($1, $2, $3, 'read', repeat('a', 64), gen_random_uuid(), $4)`,
    [organizationId, by.run.runId, by.integration.id, keys.response],
  );
  return { by, organizationId, keys, all: Object.values(keys).sort() };
}

t.test('files and responses go a day after the execution, but for those of actions', async (t) => {
  const [over, recent] = [await world(), await world()];
  await endedAgo(sql, over.by, 25);
  await endedAgo(sql, recent.by, 2);
  await runJob(sql.owner, 'actions__clean');
  t.same(await stored(over.organizationId), [over.keys.held]);
  t.same(await stored(recent.organizationId), recent.all);
  const { rows } = await sql.owner.query(
    `select (select count(*)::integer from app.action_invocation_files where organization_id = $1) as files,
       (select count(*)::integer from app.action_invocations where organization_id = $1) as invocations`,
    [over.organizationId],
  );
  t.same(rows, [{ files: 0, invocations: 0 }]);
  await runJob(sql.owner, 'actions__clean');
  t.same(await stored(over.organizationId), [over.keys.held], 'a second time changes nothing');
});

t.test('objects that a crash left before their rows are removed by the next run', async (t) => {
  const { by, organizationId, keys } = await world();
  await endedAgo(sql, by, 25);
  await storage.delete(keys.left);
  await runJob(sql.owner, 'actions__clean');
  t.same(await stored(organizationId), [keys.held]);
});

t.test('more than a batch of one organization goes, and others have their turns', async (t) => {
  const [many, one] = [await world(), await world()];
  await sql.owner.query(
    `insert into app.action_invocation_files (organization_id, run_id, integration_id, invocation_id, id, name, content_type,
       size_bytes, sha256, storage_key, stored_at)
     select organization_id, run_id, integration_id, 'more' || n, gen_random_uuid(), name, content_type, size_bytes, sha256,
       'organizations/' || organization_id || '/invocations/files/none', now()
     from app.action_invocation_files, generate_series(1, 1500) n where storage_key = $1`,
    [many.keys.left],
  );
  await endedAgo(sql, many.by, 25);
  await endedAgo(sql, one.by, 25);
  await runJob(sql.owner, 'actions__clean');
  t.same(await stored(many.organizationId), [many.keys.held]);
  t.same(await stored(one.organizationId), [one.keys.held]);
});

t.test('objects that cannot be removed hold up no others, however many rows name them', async (t) => {
  const [broken, other] = [await world(), await world()];
  const sibling = await createSibling(sql, broken.by);
  const key = await put(invocationKey(broken.organizationId, 'files'));
  await invocationFiles(sql.api, sibling, 'send').put(randomUUID(), NOTE, key);
  await sql.owner.query(
    `insert into app.action_invocation_files (organization_id, run_id, integration_id, invocation_id, id, name, content_type,
       size_bytes, sha256, storage_key, stored_at)
     select organization_id, run_id, integration_id, 'a' || n, gen_random_uuid(), name, content_type, size_bytes, sha256,
       storage_key, stored_at
     from app.action_invocation_files, generate_series(1, 450) n where storage_key = $1`,
    [broken.keys.left],
  );
  await endedAgo(sql, broken.by, 25);
  await endedAgo(sql, sibling, 25);
  await endedAgo(sql, other.by, 25);
  await sql.owner.query(
    `update app.action_invocation_files set remove_at = now() - interval '1 hour' where run_id = $1`,
    [broken.by.run.runId],
  );
  // In place of the object lies what cannot be unlinked.
  const place = path.join(fileURLToPath(jobs.storageUrl), broken.keys.left);
  await rm(place);
  await mkdir(path.join(place, 'inside'), { recursive: true });

  await runJob(sql.owner, 'actions__clean');
  t.same(await stored(broken.organizationId), [broken.keys.held], 'what else the execution left, and another one');
  t.same(await stored(other.organizationId), [other.keys.held]);
  const left = async () => {
    const { rows } = await sql.owner.query(
      `select count(*)::integer as rows, count(distinct storage_key)::integer as keys, bool_and(remove_at > now()) as off
       from app.action_invocation_files where organization_id = $1`,
      [broken.organizationId],
    );
    return rows[0];
  };
  t.same(await left(), { rows: 451, keys: 1, off: true });
  const [logged] = jobs.logged.filter(({ msg }) => msg === 'files of a run stay for now');
  t.match(logged, { level: 'error', key: broken.keys.left, runId: broken.by.run.runId });

  await rm(place, { recursive: true });
  await endedAgo(sql, broken.by, 25);
  await runJob(sql.owner, 'actions__clean');
  t.match(await left(), { rows: 0 });
});

t.test('an object that no row names goes after a day', async (t) => {
  const { organizationId, all } = await world();
  const fresh = await put(invocationKey(organizationId, 'files'));
  for (const object of ['files', 'uploads', 'responses'] as const) {
    await put(aged(invocationKey(organizationId, object), DAY_MS + 60_000));
  }
  await runJob(sql.owner, 'actions__clean_files', { organizationId });
  t.same(await stored(organizationId), [...all, fresh].sort());
});

t.test('an old object that a row names stays, whichever row', async (t) => {
  const by = await createProposer(sql);
  const { organizationId } = by.org;
  const old = (object: Parameters<typeof invocationKey>[1]) =>
    put(aged(invocationKey(organizationId, object), 3 * DAY_MS));
  const keys = [await old('files'), await old('uploads'), await old('responses'), await old('files')];
  const [file = '', upload = '', response = '', held = ''] = keys;
  await invocationFiles(sql.api, by, 'a').put(randomUUID(), NOTE, file);
  await invocationFiles(sql.api, by, 'a').begin(randomUUID(), NOTE, upload);
  await sql.owner.query(
    `insert into app.action_invocations (organization_id, run_id, integration_id, invocation_id, body_sha256, lease_id,
       response_key) values ($1, $2, $3, 'read', repeat('a', 64), gen_random_uuid(), $4)`,
    [organizationId, by.run.runId, by.integration.id, response],
  );
  await propose(sql, by, { files: [{ argument: 'body', ...NOTE, storageKey: held }] });
  await runJob(sql.owner, 'actions__clean_files', { organizationId });
  t.same(await stored(organizationId), keys.sort());
});

t.test('the objects of a deleted organization are left to its deletion', async (t) => {
  const { organizationId } = await world();
  const old = await put(aged(invocationKey(organizationId, 'files'), 2 * DAY_MS));
  await sql.owner.query('update app.organizations set deleted_at = now() where id = $1', [organizationId]);
  await runJob(sql.owner, 'actions__clean_files', { organizationId });
  t.ok((await stored(organizationId)).includes(old));
});

t.test('what calls left without a row goes with the rows of the others', async (t) => {
  const { by, organizationId, keys } = await world();
  await put(aged(invocationKey(organizationId, 'uploads'), 2 * DAY_MS));
  await endedAgo(sql, by, 25);
  await runJob(sql.owner, 'actions__clean');
  await until('the sweep', async () => (await stored(organizationId)).join() === keys.held);
  t.same(await stored(organizationId), [keys.held]);
});
