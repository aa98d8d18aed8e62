import { randomUUID } from 'node:crypto';
import t from 'tap';
import type { Member } from '../../../api/organization_members/schema.ts';
import type { Organization } from '../../../api/organizations/schema.ts';
import { startTestApp } from '../../support/app.ts';
import { startIssuer } from '../../support/jwt.ts';
import { makeOrganization, makeProfile } from '../../support/owner_api.ts';

const issuer = await startIssuer(t);
const app = await startTestApp(t, { config: { ownerAuth: issuer.ownerAuth } });
/** The same database behind a loopback port without authentication: a platform operator. */
const { owner: operator } = await startTestApp(t, { database: app.database });
const as = async (subject: string) => app.owner.as(await issuer.token(subject));
const anna = await as('anna');
const vic = await as('vic');
const eve = await as('eve');

const missing = { status: 404, code: 'organization_not_found' };
const forbidden = { status: 403, code: 'forbidden' };
const members = (id: string, subject = '') =>
  `/organizations/${id}/members${subject && `/${encodeURIComponent(subject)}`}`;

t.test('whoever creates an organization becomes its owner, and no operator does', async (t) => {
  const { id } = await makeOrganization(anna);
  const mine = await anna.get<Member[]>(members(id));
  t.match(mine, { status: 200 });
  t.match(mine.data, [{ organizationId: id, subject: 'anna', role: 'owner' }]);
  const { id: other } = await makeOrganization(operator);
  t.strictSame((await operator.get(members(other))).data, []);
});

t.test('the list shows the caller’s own organizations, to operators all', async (t) => {
  const carl = await as('carl');
  const list = async (client: typeof anna) =>
    (await client.get<Organization[]>('/organizations', { query: { limit: 200 } })).data.map((one) => one.id);
  t.strictSame(await list(carl), []);
  const first = await makeOrganization(carl);
  const second = await makeOrganization(carl);
  const third = await makeOrganization(anna);
  t.strictSame(await list(carl), [second.id, first.id]);
  await anna.put(members(third.id, 'carl'), { role: 'viewer' });
  t.strictSame(await list(carl), [third.id, second.id, first.id]);
  await carl.delete(`/organizations/${second.id}`);
  t.strictSame(await list(carl), [third.id, first.id]);
  const all = await list(operator);
  for (const id of [first.id, third.id]) t.ok(all.includes(id));
});

t.test('without a valid token every path is 401', async (t) => {
  const { id } = await makeOrganization(anna);
  const refused = { status: 401, code: 'owner_unauthorized' };
  for (const path of ['/organizations', `/organizations/${id}`, members(id), '/agent-profile-templates']) {
    t.match(await app.owner.get(path), refused, path);
    t.match(await app.owner.as('nonsense').get(path), refused, path);
  }
  t.match(await app.owner.post(`/organizations/${randomUUID()}`, { slug: 'nobody', name: 'Nobody' }), refused);
});

t.test('to a stranger the organization does not exist, whatever the method', async (t) => {
  const { id } = await makeOrganization(anna);
  const profile = await makeProfile(anna, id);
  const base = `/organizations/${id}`;
  const calls: [string, string, unknown?][] = [
    ['GET', base],
    ['PATCH', base, { name: 'Mine' }],
    ['DELETE', base],
    ['PATCH', `${base}/work-dispatch`, { stopped: true }],
    ['GET', members(id)],
    ['GET', members(id, 'anna')],
    ['PUT', members(id, 'eve'), { role: 'owner' }],
    ['DELETE', members(id, 'anna')],
    ['GET', `${base}/agent-profiles`],
    ['POST', `${base}/agent-profiles`, { key: 'mine', name: 'Mine', kind: 'chat' }],
    ['GET', `${base}/agent-profiles/${profile.id}`],
    ['PATCH', `${base}/agent-profiles/${profile.id}`, { status: 'disabled' }],
    ['DELETE', `${base}/agent-profiles/${profile.id}`],
  ];
  for (const [method, path, body] of calls) t.match(await eve.send(method, path, body), missing, `${method} ${path}`);
  t.match(await eve.post(`${base}/agent-profiles/provision`, { departments: [] }), {
    status: 404,
    code: 'request_failed',
  });
  t.match(await anna.get(base), { data: { name: 'Acme', workDispatchStoppedAt: null } });
  t.match(await anna.get(`${base}/agent-profiles/${profile.id}`), { data: { status: 'enabled' } });
});

t.test('a viewer reads everything and writes nothing', async (t) => {
  const { id } = await makeOrganization(anna);
  const profile = await makeProfile(anna, id);
  t.match(await anna.put(members(id, 'vic'), { role: 'viewer' }), { status: 200 });
  const base = `/organizations/${id}`;
  for (const path of [
    base,
    members(id),
    members(id, 'anna'),
    `${base}/agent-profiles`,
    `${base}/agent-profiles/${profile.id}`,
  ]) {
    t.match(await vic.get(path), { status: 200 }, path);
  }
  const writes: [string, string, unknown?][] = [
    ['PATCH', base, { name: 'Mine' }],
    ['DELETE', base],
    ['PATCH', `${base}/work-dispatch`, { stopped: true }],
    ['PUT', members(id, 'vic'), { role: 'owner' }],
    ['DELETE', members(id, 'anna')],
    ['POST', `${base}/agent-profiles`, { key: 'mine', name: 'Mine', kind: 'chat' }],
    ['PATCH', `${base}/agent-profiles/${profile.id}`, { status: 'disabled' }],
    ['DELETE', `${base}/agent-profiles/${profile.id}`],
    ['POST', `${base}/agent-profiles/provision`, { departments: [] }],
  ];
  for (const [method, path, body] of writes)
    t.match(await vic.send(method, path, body), forbidden, `${method} ${path}`);
  t.match(await anna.get(base), { data: { name: 'Acme' } });
});

t.test('an owner adds, changes and removes members', async (t) => {
  const { id } = await makeOrganization(anna);
  const path = members(id, 'vic');
  const added = await anna.put<Member>(path, { role: 'viewer' });
  t.match(added, { status: 200, data: { organizationId: id, subject: 'vic', role: 'viewer' } });
  t.strictSame((await anna.put(path, { role: 'viewer' })).data, added.data, 'a repeat changes nothing');
  t.strictSame((await anna.get(path)).data, added.data);
  const raised = await anna.put<Member>(path, { role: 'owner' });
  t.match(raised.data, { role: 'owner', createdAt: added.data.createdAt });
  t.match(await vic.patch(`/organizations/${id}`, { name: 'Theirs' }), { status: 200 });
  t.strictSame((await anna.delete(path)).data, raised.data);
  t.match(await vic.get(`/organizations/${id}`), missing);
  t.match(await anna.get(path), { status: 404, code: 'not_found' });
  t.match(await anna.delete(path), { status: 404, code: 'not_found' }, 'a repeat');
});

t.test('the last owner stays', async (t) => {
  const { id } = await makeOrganization(anna);
  const refused = { status: 409, code: 'state_conflict' };
  t.match(await anna.delete(members(id, 'anna')), refused);
  t.match(await anna.put(members(id, 'anna'), { role: 'viewer' }), refused);
  t.match(await operator.delete(members(id, 'anna')), refused, 'not even by an operator');
  t.match(await anna.put(members(id, 'anna'), { role: 'owner' }), { status: 200 });
  await anna.put(members(id, 'vic'), { role: 'owner' });
  t.match(await anna.put(members(id, 'anna'), { role: 'viewer' }), { status: 200 });
  t.match(await anna.patch(`/organizations/${id}`, { name: 'x' }), forbidden, 'from now on');
});

t.test('of two owners that remove each other at once, one stays', async (t) => {
  const { id } = await makeOrganization(anna);
  await anna.put(members(id, 'vic'), { role: 'owner' });
  await Promise.all([anna.delete(members(id, 'vic')), vic.put(members(id, 'anna'), { role: 'viewer' })]);
  const { data } = await operator.get<Member[]>(members(id));
  t.equal(data.filter((member) => member.role === 'owner').length, 1);
});

t.test('a subject is any text that a token may name, and paths carry it encoded', async (t) => {
  const { id } = await makeOrganization(anna);
  const subject = 'oidc|täst/1?x=ü#%41 😀';
  t.match(await anna.put(members(id, subject), { role: 'viewer' }), { status: 200, data: { subject } });
  t.match(await anna.get(members(id, subject)), { status: 200, data: { subject } });
  const client = await as(subject);
  t.match(await client.get(`/organizations/${id}`), { status: 200 });
  t.match(await anna.delete(members(id, subject)), { status: 200, data: { subject } });
});

t.test('bad requests about members are 400', async (t) => {
  const { id } = await makeOrganization(anna);
  const refused = { status: 400, code: 'validation_failed' };
  t.match(await anna.put(members(id, 'x'.repeat(256)), { role: 'viewer' }), refused);
  t.match(await anna.put(members(id, 'a\nb'), { role: 'viewer' }), refused);
  t.match(await anna.put(members(id, 'a\0b'), { role: 'viewer' }), refused);
  t.match(await anna.put(members(id, 'vic'), { role: 'admin' }), refused);
  t.match(await anna.put(members(id, 'vic'), { role: 'viewer', since: 1 }), refused);
  t.match(await anna.put(members(id, 'vic')), refused);
  t.match(await anna.get(members(id), { query: { role: 'owner' } }), refused);
  t.match(await operator.get(members('acme')), refused);
});

t.test('members of an organization that is not there are 404', async (t) => {
  const nowhere = randomUUID();
  t.match(await operator.get(members(nowhere)), missing);
  t.match(await operator.get(members(nowhere, 'anna')), missing);
  t.match(await operator.put(members(nowhere, 'anna'), { role: 'owner' }), missing);
  t.match(await operator.delete(members(nowhere, 'anna')), missing);
});

t.test('members page by subject, forward and back', async (t) => {
  const { id } = await makeOrganization(operator);
  const subjects = Array.from({ length: 7 }, (_, n) => `person-${n}`);
  for (const subject of subjects) await operator.put(members(id, subject), { role: 'viewer' });
  const page = (cursor?: string | null) =>
    operator.get<Member[]>(members(id), { query: { limit: 3, ...(cursor ? { cursor } : {}) } });
  const names = (reply: Awaited<ReturnType<typeof page>>) => reply.data.map((member) => member.subject);
  const first = await page();
  const second = await page(first.body.pagination.nextCursor);
  const third = await page(second.body.pagination.nextCursor);
  t.strictSame([first, second, third].flatMap(names), subjects);
  t.match(third.body.pagination, { hasNextPage: false, nextCursor: null, hasPreviousPage: true });
  t.strictSame(names(await page(third.body.pagination.previousCursor)), names(second));
});

t.test('only platform operators suspend an organization, make a suspended one, or lift that', async (t) => {
  const { id } = await makeOrganization(anna);
  const path = `/organizations/${id}`;
  t.match(await anna.patch(path, { status: 'suspended' }), forbidden);
  const made = { slug: 'suspended-one', name: 'Suspended', status: 'suspended' };
  t.match(await anna.post(`/organizations/${randomUUID()}`, made), forbidden);
  t.match(await anna.patch(path, { status: 'onboarding' }), { status: 409, code: 'state_conflict' });
  t.match(await operator.patch(path, { status: 'suspended' }), { status: 200, data: { status: 'suspended' } });
  t.match(await anna.patch(path, { status: 'active' }), forbidden);
  t.match(await anna.patch(path, { status: 'suspended', name: 'Still' }), { status: 200, data: { name: 'Still' } });
  t.match(await operator.patch(path, { status: 'active' }), { status: 200, data: { status: 'active' } });
  t.match(await operator.post(`/organizations/${randomUUID()}`, made), { status: 201, data: { status: 'suspended' } });
});

t.test('an id that a stranger uses is in use', async (t) => {
  const { id } = await makeOrganization(anna);
  t.match(await eve.post(`/organizations/${id}`, { slug: 'eve-takes-it', name: 'Eve' }), {
    status: 409,
    code: 'state_conflict',
  });
  t.match(await eve.get(`/organizations/${id}`), missing);
});

t.test('an Idempotency-Key is its caller’s alone', async (t) => {
  const id = randomUUID();
  const headers = { 'idempotency-key': 'shared-key' };
  const body = { slug: 'key-of-anna', name: 'Anna' };
  t.match(await anna.post(`/organizations/${id}`, body, { headers }), { status: 201 });
  t.match(await eve.post(`/organizations/${id}`, body, { headers }), { status: 409, code: 'state_conflict' });
  t.match(await anna.post(`/organizations/${id}`, body, { headers }), { status: 201 });
});
