import { randomUUID } from 'node:crypto';
import path from 'node:path';
import { Readable } from 'node:stream';
import { pathToFileURL } from 'node:url';
import t, { type Test } from 'tap';
import { createLogger } from '../../../../engine/log.ts';
import { openStorage, organizationPrefix, runOutputKey, type Storage } from '../../../../engine/storage/index.ts';
import { organizationsDelete } from '../../../../jobs/organizations/delete.ts';
import type { AddJob, JobContext } from '../../../../jobs/runner/handler.ts';
import { openServices } from '../../../../jobs/runner/services.ts';
import { jobsConfig, openJobs, queued, spawnJobs } from '../../../jobs/support.ts';
import { createChatOrganization, putAttachment, startedTurn } from '../../../support/chat_fixtures.ts';
import { createTestOrganization, runNew } from '../../../support/fixtures.ts';
import { openFolder } from '../../../support/folders.ts';
import { openSession, openSql, refusal, transition } from '../../../support/transitions.ts';
import { until } from '../../../support/wait.ts';

const sql = await openSql(t);

t.test('a deletion whose process is killed in the middle is completed by another', async (t) => {
  const STORAGE_URL = pathToFileURL(path.join(await openFolder(t), 'files')).href;
  const storage = openStorage(STORAGE_URL);
  const org = await createTestOrganization(sql);
  const { organizationId } = org;
  const run = await runNew(sql, org);
  await storage.put(runOutputKey(organizationId, run.runId), Readable.from([Buffer.from('bytes')]));
  const session = await openSession(t, sql, 'owner');
  await session.begin();
  await session.query('select from app.runs where id = $1 for key share', [run.runId]);

  const killed = await spawnJobs(t, sql.url, { STORAGE_URL });
  await transition(sql.api, 'organization_delete', { organizationId });
  await until('it stands in the middle', async () => {
    const { rows } = await sql.owner.query(
      `select from pg_stat_activity
       where datname = current_database() and wait_event_type = 'Lock' and query like '%organization_purge%'`,
    );
    return rows.length > 0;
  });
  await killed.kill('SIGKILL');
  await session.rollback();
  t.match(await queued(sql.owner, 'organizations__delete'), [{ attempts: 1 }, { attempts: 0, locked_by: null }]);

  const { logged } = await openJobs(t, sql.url, { STORAGE_URL });
  await until(
    'only the late pass is left',
    async () => (await queued(sql.owner, 'organizations__delete')).length === 1,
  );
  t.ok(logged.some(({ msg }) => msg === 'the jobs of a process that died run again'));
  const { rows } = await sql.owner.query('select from app.tasks where organization_id = $1', [organizationId]);
  t.equal(rows.length, 0);
  t.same(await storage.list(organizationPrefix(organizationId)), { objects: [], next: null });
});

type Started = Readonly<{ context: JobContext; storage: Storage; added: unknown[]; stop: () => void }>;

/** What the task is given, with a storage of its own and without a queue. */
async function openContext(t: Test): Promise<Started> {
  const config = await jobsConfig(t, sql.url);
  const services = openServices(config, createLogger('silent', 'jobs'));
  t.teardown(() => services.close());
  const stopping = new AbortController();
  const added: unknown[] = [];
  const addJob: AddJob = async (name, payload, options) => added.push({ name, payload, key: options?.key });
  const context = { ...services, jobId: '1', attempt: 1, addJob, signal: stopping.signal };
  return { context, storage: services.storage, added, stop: () => stopping.abort() };
}

/** A deleted organization with work and files. */
async function deletedOrganization(storage: Storage, files = 1): Promise<string> {
  const org = await createChatOrganization(sql);
  const run = await runNew(sql, org);
  const turn = await startedTurn(sql, org);
  await putAttachment(sql.api, org, turn.chatId);
  for (let stored = 0; stored < files; stored += 1) await store(storage, org.organizationId, run.runId);
  await transition(sql.api, 'organization_delete', { organizationId: org.organizationId });
  return org.organizationId;
}

async function store(storage: Storage, organizationId: string, runId: string = randomUUID()): Promise<void> {
  await storage.put(runOutputKey(organizationId, runId), Readable.from([Buffer.from('bytes')]));
}

async function objects(storage: Storage, organizationId: string): Promise<number> {
  return (await storage.list(organizationPrefix(organizationId), { limit: 1_000 })).objects.length;
}

/** The rows of an organization, by table. */
async function rowsOf(organizationId: string): Promise<Record<string, number>> {
  const { rows: tables } = await sql.owner.query<{ name: string; key: string }>(
    `select table_name as name, column_name as key from information_schema.columns
     where table_schema = 'app' and (column_name = 'organization_id' or (table_name, column_name) = ('organizations', 'id'))
       and table_name in (select table_name from information_schema.tables where table_type = 'BASE TABLE')`,
  );
  const counts: Record<string, number> = {};
  for (const { name, key } of tables) {
    const { rows } = await sql.owner.query(`select count(*)::int as rows from app.${name} where ${key} = $1`, [
      organizationId,
    ]);
    if (rows[0].rows > 0) counts[name] = rows[0].rows;
  }
  return counts;
}

const passes = {
  first: (organizationId: string) => ({ organizationId, late: false }),
  late: (organizationId: string) => ({ organizationId, late: true }),
};

t.test('a large organization leaves off for others, and is removed in the end', async (t) => {
  const { context, storage } = await openContext(t);
  const organizationId = await deletedOrganization(storage);
  await sql.owner.query(
    `insert into app.idempotency_keys (organization_id, caller, method, path, key, body_hash)
     select $1, 'test', 'POST', '/x', 'key ' || n, 'hash' from generate_series(1, 12000) n`,
    [organizationId],
  );
  const payload = { organizationId, late: false };
  t.equal(await organizationsDelete(payload, context), 'unfinished');
  t.ok((await rowsOf(organizationId))['idempotency_keys']);
  let runs = 1;
  while ((await organizationsDelete(payload, context)) === 'unfinished') runs += 1;
  t.ok(runs < 5);
  t.notOk((await rowsOf(organizationId))['idempotency_keys']);
  t.equal(await objects(storage, organizationId), 0);
});

t.test('the first pass leaves the row alone, so that the id stays taken; the late one takes it too', async (t) => {
  const { context, storage, added } = await openContext(t);
  const organizationId = await deletedOrganization(storage);
  const other = await createTestOrganization(sql);
  await store(storage, other.organizationId);

  t.equal(await organizationsDelete(passes.first(organizationId), context), 'done');
  t.match(Object.keys(await rowsOf(organizationId)).sort(), ['dispatch', 'organizations', 'task_identifiers']);
  t.equal(await objects(storage, organizationId), 0);
  t.match(added, [
    {
      name: 'organizations__delete',
      payload: { organizationId, late: true },
      key: `organizations__delete:${organizationId}:late`,
    },
  ]);
  const again = () =>
    transition(sql.api, 'organization_create', {
      organizationId,
      fields: { slug: `o-${organizationId}`, name: 'Again' },
      subject: null,
    });
  t.match(await refusal(again()), { status: 409, code: 'state_conflict' });

  await store(storage, organizationId); // an upload whose process died before it took the bytes away again
  t.equal(await organizationsDelete(passes.late(organizationId), context), 'done');
  t.same(await rowsOf(organizationId), {});
  t.equal(await objects(storage, organizationId), 0);
  t.equal(added.length, 1, 'there is no third pass');

  await again();
  await store(storage, organizationId);
  t.equal(await organizationsDelete(passes.late(organizationId), context), 'done', 'a job that runs twice');
  t.equal(await organizationsDelete(passes.first(organizationId), context), 'done');
  t.equal(await objects(storage, organizationId), 1, 'the new owner keeps the files');
  t.equal(await objects(storage, other.organizationId), 1, 'as do others');
  t.match(await rowsOf(organizationId), { organizations: 1, dispatch: 2 });
});

t.test('a pass that stops or fails in the middle goes on with what is left', async (t) => {
  const { context, storage, stop } = await openContext(t);
  const organizationId = await deletedOrganization(storage, 3);
  const payload = passes.first(organizationId);
  const failing = {
    ...storage,
    deletePrefix: async (prefix: string) => {
      await storage.deletePrefix(prefix, { batch: 1 });
      throw new Error('the disk is gone');
    },
  };
  await t.rejects(organizationsDelete(payload, { ...context, storage: failing }), { message: 'the disk is gone' });
  t.equal(await objects(storage, organizationId), 2);

  const stopping = {
    ...storage,
    deletePrefix: async (prefix: string) => {
      stop();
      return storage.deletePrefix(prefix, { batch: 1 });
    },
  };
  t.equal(await organizationsDelete(payload, { ...context, storage: stopping }), 'unfinished');
  t.equal(await objects(storage, organizationId), 1);

  const fresh = { ...context, signal: new AbortController().signal };
  t.equal(await organizationsDelete(payload, fresh), 'done');
  t.equal(await objects(storage, organizationId), 0);
});

t.test('an organization that is not deleted is not touched', async (t) => {
  const { context, storage } = await openContext(t);
  const org = await createTestOrganization(sql);
  await store(storage, org.organizationId);
  const before = await rowsOf(org.organizationId);
  for (const pass of [passes.first, passes.late]) {
    t.equal(await organizationsDelete(pass(org.organizationId), context), 'done');
  }
  t.same(await rowsOf(org.organizationId), before);
  t.equal(await objects(storage, org.organizationId), 1);
});
