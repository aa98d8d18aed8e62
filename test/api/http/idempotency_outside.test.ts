import { randomUUID } from 'node:crypto';
import { sql as statement } from 'slonik';
import t from 'tap';
import { z } from 'zod';
import { apiEndpoints } from '../../../api/app.ts';
import { uuid } from '../../../api/fields/ids.ts';
import { endpoint } from '../../../api/http/endpoint.ts';
import { call } from '../../../engine/db/call.ts';
import { contextPrefix } from '../../../engine/storage/index.ts';
import { expectSuccess, type Fields, ownerPath, refusalOf, sqlOf } from '../../support/api_fixtures.ts';
import { startTestApp } from '../../support/app.ts';
import { createChat, createChatOrganization } from '../../support/chat_fixtures.ts';
import { createTestOrganization, type TestOrganization } from '../../support/fixtures.ts';
import { FULL } from '../../support/full.ts';
import { startIssuer } from '../../support/jwt.ts';
import { until } from '../../support/wait.ts';

const reading = endpoint({
  method: 'post',
  path: '/organizations/{organizationId}/read',
  audience: 'owner',
  tag: 'System',
  operationId: 'readInTransaction',
  summary: 'Reads a file, and does not say so',
  params: { organizationId: uuid },
  response: { data: z.object({ found: z.boolean() }) },
  handler: async ({ services }) => ({ found: (await services.storage.stat('none')) !== undefined }),
});

const runs = { handler: 0, commit: 0 };
/** Its last change is given up for a lock the first two times. */
const contended = endpoint({
  method: 'post',
  path: '/organizations/{organizationId}/contended',
  audience: 'owner',
  tag: 'System',
  operationId: 'commitLate',
  summary: 'Reads files once, and commits at the third attempt',
  params: { organizationId: uuid },
  response: { data: z.object({ attempts: z.int() }) },
  external: true,
  handler({ commit }) {
    runs.handler += 1;
    return commit(async (db) => {
      runs.commit += 1;
      if (runs.commit % 3 > 0) await db.query(statement.unsafe`do 'begin raise deadlock_detected; end'`);
      return { attempts: runs.commit };
    });
  },
});

const app = await startTestApp(t, { endpoints: [...apiEndpoints(), reading, contended] });
const sql = sqlOf(app);
const { storage } = app.services;
const { storageUrl } = app.config;
const keyed = (key: string) => ({ headers: { 'idempotency-key': key } });

/** Reads of files stand still until `open`. */
let open = (): void => {};
let standing = 0;
function standStill(): void {
  const { promise, resolve } = Promise.withResolvers<void>();
  open = () => {
    resolve();
    Object.assign(app.services, { storage });
  };
  const get: typeof storage.get = async (key, options) => {
    standing += 1;
    await promise;
    standing -= 1;
    return storage.get(key, options);
  };
  Object.assign(app.services, { storage: { ...storage, get } });
}
t.afterEach(() => open());

async function attach(org: TestOrganization): Promise<Fields> {
  const chat = await createChat(sql, org);
  const attachmentId = randomUUID();
  const path = ownerPath(org, `/chats/${chat.id}/attachments/${attachmentId}?fileName=plan.md&mediaType=text/markdown`);
  expectSuccess(await app.owner.put(path, 'the plan'), 201);
  return { kind: 'chat_attachment', chatId: chat.id, attachmentId };
}

const retain = (org: TestOrganization, body: Fields, key: string) =>
  app.owner.post<{ id: string }>(ownerPath(org, '/context/sources'), body, { headers: { 'idempotency-key': key } });

async function sources(org: TestOrganization): Promise<number> {
  const { rows } = await sql.owner.query('select from app.context_sources where organization_id = $1', [
    org.organizationId,
  ]);
  return rows.length;
}

const copies = async (org: TestOrganization) => (await storage.list(contextPrefix(org.organizationId))).objects.length;

t.test('calls with keys that copy files hold no connection, and few of an organization are in work', async (t) => {
  const [org, other] = [await createChatOrganization(sql), await createTestOrganization(sql)];
  const body = await attach(org);
  standStill();
  let over = 0;
  const calls = Array.from({ length: 200 }, async (_, index) => {
    const reply = await retain(org, body, `k${index}`);
    over += 1;
    return reply;
  });
  await until('those that may be are in work, the others are refused', () => standing === 4 && over === 196);
  await until('none holds a connection', () => app.services.db.load().running === 0);
  const began = performance.now();
  expectSuccess(await app.owner.get(ownerPath(other, '/tasks')));
  t.ok(performance.now() - began < 1_000, 'another organization is served at once');
  open();
  const replies = await Promise.all(calls);
  const refused = replies.filter((reply) => reply.status !== 201);
  t.equal(refused.length, 196);
  t.ok(refused.every((reply) => refusalOf(reply).startsWith('429 too_many_requests')));
  t.ok(refused.every((reply) => reply.headers.get('retry-after') === '1'));
  t.equal(await sources(org), 1, 'the same source for all');
  t.equal(await copies(org), 1);
});

t.test('a second call waits for the first without a connection, and gets its response', async (t) => {
  const org = await createChatOrganization(sql);
  const body = await attach(org);
  standStill();
  const first = retain(org, body, 'once');
  await until('it is in work', () => standing === 1);
  const second = retain(org, body, 'once');
  if (FULL) {
    const inUse = '409 idempotency_key_in_use idempotency_key_in_use';
    t.equal(refusalOf(await second), inUse, 'ten seconds are too long');
  }
  t.equal(app.services.db.load().running, 0);
  const third = retain(org, body, 'once');
  open();
  const created = expectSuccess(await first, 201);
  const replayed = await third;
  t.equal(replayed.headers.get('idempotency-replayed'), 'true');
  t.same(expectSuccess(replayed, 201), created);
  if (!FULL) t.same(expectSuccess(await second, 201), created);
  t.equal(await copies(org), 1);
});

t.test('a claim that ran out is taken over, and what its holder wants to commit is refused', async (t) => {
  const org = await createChatOrganization(sql);
  const body = await attach(org);
  standStill();
  const lost = retain(org, body, 'frozen');
  await until('it is in work', () => standing === 1);
  const letGo = open;
  await sql.owner.query(
    'update app.idempotency_keys set claimed_until = clock_timestamp() where organization_id = $1',
    [org.organizationId],
  );
  Object.assign(app.services, { storage });
  expectSuccess(await retain(org, body, 'frozen'), 201);
  letGo();
  t.equal(refusalOf(await lost), '409 idempotency_key_in_use idempotency_key_in_use');
  t.equal(await sources(org), 1);
  t.equal(await copies(org), 1, 'the copy of the one that lost is gone');
});

t.test('a refusal gives the key back', async (t) => {
  const org = await createChatOrganization(sql);
  const body = await attach(org);
  const none = await retain(org, { ...body, attachmentId: randomUUID() }, 'again');
  t.equal(none.status, 404);
  expectSuccess(await retain(org, body, 'again'), 201);
});

t.test('a response is not given again to whom the organization is closed by then', async (t) => {
  const org = await createChatOrganization(sql);
  const body = await attach(org);
  expectSuccess(await retain(org, body, 'closed'), 201);
  expectSuccess(await app.owner.delete(`/organizations/${org.organizationId}`));
  t.equal((await retain(org, body, 'closed')).status, 404);
});

t.test('a response is not given again to whom was removed, or may only read by then', async (t) => {
  const issuer = await startIssuer(t);
  const jwt = await startTestApp(t, { database: app.database, config: { ownerAuth: issuer.ownerAuth, storageUrl } });
  const [org, anna] = [await createChatOrganization(sql), jwt.owner.as(await issuer.token('anna'))];
  const { organizationId } = org;
  const body = await attach(org);
  const setRole = (subject: string, role: string) =>
    call(jwt.services.db, 'organization_member_put', { organizationId, subject, role }, z.unknown());
  await setRole('berta', 'owner');
  await setRole('anna', 'owner');
  // One whose key is in the transaction of its change, and one whose key is claimed before it.
  const calls = {
    inside: () => anna.post(ownerPath(org, '/chats'), { title: 'x' }, keyed('k')),
    outside: () => anna.post(ownerPath(org, '/context/sources'), body, keyed('k')),
  };
  for (const [name, repeat] of Object.entries(calls)) {
    const made = expectSuccess(await repeat(), 201);
    const again = await repeat();
    t.equal(again.headers.get('idempotency-replayed'), 'true', name);
    t.same(again.data, made);
  }
  async function refuses(refusal: string) {
    for (const [name, repeat] of Object.entries(calls)) {
      const reply = await repeat();
      t.equal(refusalOf(reply), refusal, name);
      t.equal(reply.headers.get('idempotency-replayed'), null);
      t.notOk('data' in reply.body, 'nothing of what is stored');
    }
  }
  await setRole('anna', 'viewer');
  await refuses('403 forbidden');
  await call(jwt.services.db, 'organization_member_delete', { organizationId, subject: 'anna' }, z.unknown());
  await refuses('404 organization_not_found');
  await setRole('anna', 'owner');
  for (const repeat of Object.values(calls)) {
    t.equal((await repeat()).headers.get('idempotency-replayed'), 'true', 'kept for whoever may have it');
  }
});

t.test('a handler in a transaction has no files to wait for', async (t) => {
  const org = await createTestOrganization(sql);
  const path = ownerPath(org, '/read');
  expectSuccess(await app.owner.post(path));
  const keyed = await app.owner.post(path, undefined, { headers: { 'idempotency-key': 'k' } });
  t.equal(keyed.status, 500);
  t.ok(app.logged.some((entry) => /storage is used in a transaction/.test(JSON.stringify(entry))));
});

t.test('what an external handler commits last is repeated by itself, with a key and without', async (t) => {
  const org = await createTestOrganization(sql);
  const path = ownerPath(org, '/contended');
  t.same(expectSuccess(await app.owner.post(path)), { attempts: 3 });
  const keyed = { headers: { 'idempotency-key': 'k' } };
  t.same(expectSuccess(await app.owner.post(path, undefined, keyed)), { attempts: 6 });
  t.same(expectSuccess(await app.owner.post(path, undefined, keyed)), { attempts: 6 });
  t.equal(runs.handler, 2, 'it reads its files once a call');
});

t.test(
  'onboarding calls, whose code is one for all refusals, name a key that was used otherwise in an issue',
  async (t) => {
    const post = (name: string) =>
      app.owner.post('/organization-onboardings', { name }, { headers: { 'idempotency-key': 'onboarding' } });
    expectSuccess(await post('Anna'), 201);
    t.equal(refusalOf(await post('Berta')), '409 request_failed idempotency_key_reused');
  },
);
