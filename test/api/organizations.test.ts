import { randomUUID } from 'node:crypto';
import t from 'tap';
import type { Organization } from '../../api/resources/organization.ts';
import { startTestApp } from '../support/app.ts';
import { issuePaths } from '../support/http.ts';
import { makeOrganization, makeProfile, makeTask, pull, start, started } from '../support/owner_api.ts';
import { wakesPulls } from '../support/wakes.ts';

const app = await startTestApp(t);
const { owner } = app;
const nowhere = randomUUID();

const defaults = (id: string) => ({
  status: 'active',
  onboardedAt: null,
  workDispatchStoppedAt: null,
  rootUri: `org://${id}`,
  authorizationEpoch: 1,
  config: {
    timezone: 'UTC',
    departments: { growth: { enabled: true }, engineering: { enabled: true }, support: { enabled: true } },
    limits: {
      maxConcurrentRuns: 5,
      maxDailyActions: 100,
      maxTaskDepth: 5,
      maxPlanOperations: 50,
      maxInitiativeDescendants: 200,
    },
    storageRootUri: `org://${id}/storage`,
  },
  constraints: { allowedIntegrations: [], blockedDomains: [], approvalRequiredForRisk: ['external', 'high'] },
});

t.test('a new organization has the id of its path and every default', async (t) => {
  const id = randomUUID();
  const made = await owner.post<Organization>(`/organizations/${id}`, { slug: 'north-light', name: '  North Light ' });
  t.equal(made.status, 201);
  const { createdAt, updatedAt, ...rest } = made.data;
  t.strictSame(rest, { id, slug: 'north-light', name: 'North Light', ...defaults(id) });
  t.match(createdAt, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  t.equal(updatedAt, createdAt);
  const read = await owner.get(`/organizations/${id.toUpperCase()}`);
  t.equal(read.status, 200);
  t.strictSame(read.data, made.data);
});

t.test('a new organization takes every field that it is given, over the defaults', async (t) => {
  const id = randomUUID();
  const body = {
    slug: 'given',
    name: 'Given',
    status: 'onboarding',
    onboardedAt: '2026-01-31T10:30:00+01:00',
    rootUri: `ORG://${id.toUpperCase()}/root/Memory`,
    authorizationEpoch: 7,
    config: {
      timezone: 'america/new_york',
      departments: { growth: { enabled: false } },
      limits: { maxConcurrentRuns: 2, maxTaskDepth: 0 },
      storageRootUri: `org://${id}/files`,
    },
    constraints: { allowedIntegrations: ['mail'], blockedDomains: ['Bücher.example'], approvalRequiredForRisk: [] },
  };
  const made = await owner.post<Organization>(`/organizations/${id}`, body);
  t.equal(made.status, 201);
  const config = defaults(id).config;
  t.match(made.data, {
    ...body,
    onboardedAt: '2026-01-31T09:30:00.000Z',
    rootUri: `org://${id}/root/Memory`,
    config: {
      ...config,
      timezone: 'America/New_York',
      departments: { ...config.departments, growth: { enabled: false } },
      limits: { ...config.limits, maxConcurrentRuns: 2, maxTaskDepth: 0 },
      storageRootUri: `org://${id}/files`,
    },
    constraints: { blockedDomains: ['xn--bcher-kva.example'] },
  });
});

t.test('an organization that is not there is 404 on every path', async (t) => {
  const missing = { status: 404, code: 'organization_not_found' };
  t.match(await owner.get(`/organizations/${nowhere}`), missing);
  t.match(await owner.patch(`/organizations/${nowhere}`, { name: 'x' }), missing);
  t.match(await owner.delete(`/organizations/${nowhere}`), missing);
  t.match(await owner.patch(`/organizations/${nowhere}/work-dispatch`, { stopped: true }), missing);
});

t.test('an id that is no uuid is 400 on every path', async (t) => {
  const refused = { status: 400, code: 'validation_failed' };
  t.match(await owner.get('/organizations/acme'), refused);
  t.match(await owner.post('/organizations/acme', { slug: 'a', name: 'A' }), refused);
  t.match(await owner.patch('/organizations/acme', {}), refused);
  t.match(await owner.delete('/organizations/acme'), refused);
  t.match(await owner.patch('/organizations/acme/work-dispatch', { stopped: true }), refused);
});

t.test('a create names every wrong field at once', async (t) => {
  const wrong = await owner.post(`/organizations/${randomUUID()}`, {
    slug: 'Not A Slug',
    status: 'closed',
    onboardedAt: 'yesterday',
    rootUri: 'file:///etc/passwd',
    authorizationEpoch: 0,
    owner: 'me',
    config: {
      timezone: 'Europe/Nowhere',
      departments: { sales: { enabled: true }, growth: { enabled: 'yes', size: 3 } },
      limits: { maxConcurrentRuns: 1.5, maxStorage: 1 },
      colour: 'red',
    },
    constraints: { allowedIntegrations: 'mail', blockedDomains: ['not a domain'], approvalRequiredForRisk: ['low'] },
  });
  t.match(wrong, { status: 400, code: 'validation_failed' });
  t.strictSame(issuePaths(wrong), [
    'authorizationEpoch',
    'config.colour',
    'config.departments.growth.enabled',
    'config.departments.growth.size',
    'config.departments.sales',
    'config.limits.maxConcurrentRuns',
    'config.limits.maxStorage',
    'config.timezone',
    'constraints.allowedIntegrations',
    'constraints.approvalRequiredForRisk.0',
    'constraints.blockedDomains.0',
    'name',
    'onboardedAt',
    'owner',
    'rootUri',
    'slug',
    'status',
  ]);
});

for (const onboardedAt of ['0000-01-01T00:00:00Z', '9999-12-31T23:59:59-10:00', '2026-02-30T00:00:00Z', '2026-01-31']) {
  t.test(`${onboardedAt} is no point in time`, async (t) => {
    const reply = await owner.post(`/organizations/${randomUUID()}`, { slug: 'when', name: 'When', onboardedAt });
    t.equal(reply.status, 400);
    t.strictSame(issuePaths(reply), ['onboardedAt']);
  });
}

t.test('a create without a body, or with nulls that a patch would take, is 400', async (t) => {
  const path = `/organizations/${randomUUID()}`;
  t.strictSame(issuePaths(await owner.post(path)), ['name', 'slug']);
  const nulls = { slug: 'nulls', name: 'Nulls', rootUri: null, config: { timezone: null }, constraints: null };
  t.strictSame(issuePaths(await owner.post(path, nulls)), ['config.timezone', 'constraints', 'rootUri']);
});

for (const [what, timezone] of [
  ['an offset', '+01:00'],
  ['an abbreviation that is none', 'NOPE'],
  ['nothing', ''],
  ['text around a name', ' Europe/Berlin'],
] as const) {
  t.test(`${what} is no time zone`, async (t) => {
    const reply = await owner.post(`/organizations/${randomUUID()}`, { slug: 'tz', name: 'TZ', config: { timezone } });
    t.equal(reply.status, 400);
    t.strictSame(issuePaths(reply), ['config.timezone']);
  });
}

for (const slug of ['-a', 'a-', 'a--b', 'a_b', 'Ä', '', 'a'.repeat(64)]) {
  t.test(`${slug || 'nothing'} is no slug`, async (t) => {
    const reply = await owner.post(`/organizations/${randomUUID()}`, { slug, name: 'Slug' });
    t.equal(reply.status, 400);
    t.strictSame(issuePaths(reply), ['slug']);
  });
}

t.test('a slug may have 63 characters', async (t) => {
  t.equal((await makeOrganization(owner, { slug: 'a'.repeat(63) })).slug.length, 63);
});

t.test('logical URIs stay inside their organization', async (t) => {
  const { id } = await makeOrganization(owner);
  const other = await makeOrganization(owner);
  for (const rootUri of [
    `org://${other.id}`,
    `org://${other.id}/root`,
    `org://${id}extra`,
    `org://${id}/../${other.id}`,
    `org://${id}/a/%2E%2e/b`,
    `org://${id}/a//b`,
    `org://${id}/a\\b`,
    `org://${id}/a b`,
    `org://${id}/?a=b`,
    `s3://${id}/bucket`,
    'org://',
    '',
  ]) {
    const reply = await owner.patch(`/organizations/${id}`, { rootUri });
    t.match(reply, { status: 400, code: 'validation_failed' }, rootUri);
    t.strictSame(issuePaths(reply), ['rootUri'], rootUri);
  }
  const both = { rootUri: `org://${other.id}`, config: { storageRootUri: `org://${other.id}/x` } };
  t.strictSame(issuePaths(await owner.patch(`/organizations/${id}`, both)), ['config.storageRootUri', 'rootUri']);
  const fresh = { slug: 'uris', name: 'Uris', ...both };
  const created = await owner.post(`/organizations/${randomUUID()}`, fresh);
  t.strictSame(issuePaths(created), ['config.storageRootUri', 'rootUri']);
  const kept = await owner.patch<Organization>(`/organizations/${id}`, { rootUri: `org://${id}/a..b/c%20d/` });
  t.equal(kept.data.rootUri, `org://${id}/a..b/c%20d/`);
});

t.test('a slug and an id are given once', async (t) => {
  const first = await makeOrganization(owner, { slug: 'taken' });
  const slugInUse = { status: 409, code: 'request_failed' };
  const second = randomUUID();
  const refused = await owner.post(`/organizations/${second}`, { slug: 'taken', name: 'Second' });
  t.match(refused, slugInUse);
  t.strictSame(issuePaths(refused), ['slug']);
  t.match(await owner.get(`/organizations/${second}`), { status: 404 });
  t.match(await owner.post(`/organizations/${first.id}`, { slug: 'other-slug', name: 'Again' }), {
    status: 409,
    code: 'state_conflict',
  });
  const other = await makeOrganization(owner);
  t.match(await owner.patch(`/organizations/${other.id}`, { slug: 'taken' }), slugInUse);
  t.match(await owner.patch(`/organizations/${first.id}`, { slug: 'taken' }), { status: 200 });
});

t.test('of two creates at once with one slug, one wins', async (t) => {
  const replies = await Promise.all(
    Array.from({ length: 8 }, () => owner.post(`/organizations/${randomUUID()}`, { slug: 'race', name: 'Race' })),
  );
  t.equal(replies.filter((reply) => reply.status === 201).length, 1);
  t.equal(replies.filter((reply) => reply.status === 409 && reply.code === 'request_failed').length, 7);
});

t.test('a create sent again with its Idempotency-Key is answered again', async (t) => {
  const id = randomUUID();
  const headers = { 'idempotency-key': 'make-it-once' };
  const body = { slug: 'made-once', name: 'Once' };
  const first = await owner.post(`/organizations/${id}`, body, { headers });
  const again = await owner.post(`/organizations/${id}`, body, { headers });
  t.match(again, { status: 201, data: first.data });
  t.equal(again.headers.get('idempotency-replayed'), 'true');
  t.match(await owner.post(`/organizations/${id}`, { ...body, name: 'Twice' }, { headers }), {
    status: 409,
    code: 'idempotency_key_reused',
  });
  t.match(await owner.post(`/organizations/${id}`, body), { status: 409, code: 'state_conflict' });
});

t.test('a patch merges: what it leaves out stays, null brings a default back, lists are replaced', async (t) => {
  const { id, ...before } = await makeOrganization(owner, {
    config: { timezone: 'Europe/Berlin', limits: { maxConcurrentRuns: 9, maxDailyActions: 3 } },
    constraints: { allowedIntegrations: ['mail', 'crm'], approvalRequiredForRisk: [] },
    onboardedAt: '2026-01-31T09:30:00Z',
  });
  const patch = async (body: unknown) => (await owner.patch<Organization>(`/organizations/${id}`, body)).data;
  const unchanged = await patch({});
  t.strictSame(unchanged, { id, ...before });

  const nested = await patch({
    config: { limits: { maxConcurrentRuns: null }, departments: { support: { enabled: false } } },
  });
  t.strictSame(nested.config, {
    ...before.config,
    limits: { ...before.config.limits, maxConcurrentRuns: 5 },
    departments: { ...before.config.departments, support: { enabled: false } },
  });
  t.ok(nested.updatedAt > before.updatedAt);
  t.equal(nested.createdAt, before.createdAt);

  const lists = await patch({ constraints: { allowedIntegrations: ['shop'], approvalRequiredForRisk: null } });
  t.strictSame(lists.constraints, {
    allowedIntegrations: ['shop'],
    blockedDomains: [],
    approvalRequiredForRisk: ['external', 'high'],
  });

  const removed = await patch({ config: { limits: null, departments: { support: null } }, onboardedAt: null });
  t.strictSame(removed.config, { ...defaults(id).config, timezone: 'Europe/Berlin' });
  t.equal(removed.onboardedAt, null);

  const all = await patch({ config: null, constraints: null, rootUri: null, name: 'Other', slug: `other-${id}` });
  t.match(all, { name: 'Other', slug: `other-${id}`, rootUri: `org://${id}` });
  t.strictSame(all.config, defaults(id).config);
  t.strictSame(all.constraints, defaults(id).constraints);
});

t.test('a patch also comes as application/merge-patch+json', async (t) => {
  const { id } = await makeOrganization(owner);
  const reply = await owner.send<Organization>(
    'PATCH',
    `/organizations/${id}`,
    { name: 'Merged' },
    {
      headers: { 'content-type': 'application/merge-patch+json' },
    },
  );
  t.match(reply, { status: 200, data: { name: 'Merged' } });
});

t.test('a patch refuses unknown fields at every depth, and null for what cannot be without', async (t) => {
  const { id, ...before } = await makeOrganization(owner);
  const wrong = await owner.patch(`/organizations/${id}`, {
    id,
    createdAt: '2026-01-31T09:30:00Z',
    workDispatchStoppedAt: null,
    slug: null,
    name: null,
    status: null,
    authorizationEpoch: null,
    config: { limits: { other: 1 }, departments: { growth: { size: 1 } } },
    constraints: { other: [] },
  });
  t.equal(wrong.status, 400);
  t.strictSame(issuePaths(wrong), [
    'authorizationEpoch',
    'config.departments.growth.size',
    'config.limits.other',
    'constraints.other',
    'createdAt',
    'id',
    'name',
    'slug',
    'status',
    'workDispatchStoppedAt',
  ]);
  t.strictSame((await owner.get(`/organizations/${id}`)).data, { id, ...before });
});

t.test('changed constraints raise the epoch by one; nothing else does', async (t) => {
  const { id } = await makeOrganization(owner);
  const epochAfter = async (body: unknown) =>
    (await owner.patch<Organization>(`/organizations/${id}`, body)).data.authorizationEpoch;
  t.equal(await epochAfter({ name: 'Other', config: { timezone: 'Asia/Tokyo' } }), 1);
  t.equal(await epochAfter({ constraints: { blockedDomains: ['example.com'] } }), 2);
  t.equal(await epochAfter({ constraints: { blockedDomains: ['EXAMPLE.com'] } }), 2, 'the same');
  t.equal(await epochAfter({ constraints: { blockedDomains: null } }), 3);
  t.equal(await epochAfter({ authorizationEpoch: 3, constraints: { allowedIntegrations: ['mail'] } }), 4);
  t.equal(await epochAfter({ authorizationEpoch: 10, constraints: null }), 10);
});

t.test('the epoch never sinks', async (t) => {
  const { id } = await makeOrganization(owner, { authorizationEpoch: 5 });
  const lowered = await owner.patch(`/organizations/${id}`, { authorizationEpoch: 4, name: 'Other' });
  t.match(lowered, { status: 409, code: 'state_conflict' });
  t.strictSame(issuePaths(lowered), ['authorizationEpoch']);
  t.match(await owner.get(`/organizations/${id}`), { data: { authorizationEpoch: 5, name: 'Acme' } });
  t.match(await owner.patch(`/organizations/${id}`, { authorizationEpoch: 5 }), { status: 200 });
  // Beyond it a later raise would leave the range of the column.
  t.match(await owner.patch(`/organizations/${id}`, { authorizationEpoch: 2_147_483_647 }), { status: 400 });
});

t.test('two patches at once keep both changes', async (t) => {
  const { id } = await makeOrganization(owner);
  const limits = ['maxConcurrentRuns', 'maxDailyActions', 'maxTaskDepth', 'maxPlanOperations'] as const;
  await Promise.all(limits.map((name) => owner.patch(`/organizations/${id}`, { config: { limits: { [name]: 42 } } })));
  const { data } = await owner.get<Organization>(`/organizations/${id}`);
  for (const name of limits) t.equal(data.config.limits[name], 42, name);
});

t.test('a suspended organization hands nothing out, takes its claims back, and lets started runs finish', async (t) => {
  const { id } = await makeOrganization(owner);
  const profile = await makeProfile(owner, id);
  for (let n = 0; n < 3; n += 1) await makeTask(owner, profile);
  const [running, claimed] = await pull(app, id, 2);
  if (!running || !claimed) return t.fail('nothing was pulled');
  const run = await started(app, running);

  t.match(await owner.patch(`/organizations/${id}`, { status: 'suspended' }), { data: { status: 'suspended' } });
  t.match(await start(app, claimed), { status: 409, code: 'run_lease_expired' });
  t.strictSame(await pull(app, id, 10), []);
  const heartbeat = { organizationId: id, leaseToken: running.leaseToken };
  t.match(await app.service.post(`/internal/runs/${run.runId}/heartbeat`, heartbeat), { data: { status: 'starting' } });
  t.match(await owner.get(`/organizations/${id}/tasks`), { status: 200 });

  t.match(await owner.patch(`/organizations/${id}`, { status: 'active' }), { data: { status: 'active' } });
  t.equal((await pull(app, id, 10)).length, 2);
});

t.test('a raised limit opens the organization, and wakes workers that wait', async (t) => {
  const { id } = await makeOrganization(owner, { config: { limits: { maxConcurrentRuns: 1 } } });
  const profile = await makeProfile(owner, id);
  for (let n = 0; n < 4; n += 1) await makeTask(owner, profile);
  t.equal((await pull(app, id, 4)).length, 1);
  t.ok(
    await wakesPulls(app, () => owner.patch(`/organizations/${id}`, { config: { limits: { maxConcurrentRuns: 3 } } })),
  );
  t.equal((await pull(app, id, 4)).length, 2);
});

t.test('stopped dispatch publishes nothing new; resuming publishes what is due and says how much', async (t) => {
  const { id } = await makeOrganization(owner);
  const profile = await makeProfile(owner, id);
  const before = await makeTask(owner, profile);
  const set = (stopped: unknown) =>
    owner.patch<{ organization: Organization; publishedRunRequests: number }>(`/organizations/${id}/work-dispatch`, {
      stopped,
    });

  const stopped = await set(true);
  t.match(stopped, {
    status: 200,
    data: { organization: { id, workDispatchStoppedAt: String }, publishedRunRequests: 0 },
  });
  const repeated = await set(true);
  t.strictSame(repeated.data, stopped.data, 'a repeat changes nothing');
  t.match(await owner.get(`/organizations/${id}`), { data: stopped.data.organization });

  for (let n = 0; n < 2; n += 1) await makeTask(owner, profile);
  await makeTask(owner, profile, { scheduledAt: '2999-01-01T00:00:00Z' });
  const [claim, ...others] = await pull(app, id, 10);
  t.strictSame(others, [], 'what was published before the stop is still handed out');
  t.equal(claim?.task.id, before.id);
  if (claim) t.match(await start(app, claim), { status: 200 });

  t.match(await set(false), { data: { organization: { workDispatchStoppedAt: null }, publishedRunRequests: 2 } });
  t.match(await set(false), { data: { organization: { workDispatchStoppedAt: null }, publishedRunRequests: 0 } });
  t.equal((await pull(app, id, 10)).length, 2);
  t.match(await set('yes'), { status: 400 });
  t.match(await owner.patch(`/organizations/${id}/work-dispatch`), { status: 400 });
  t.match(await owner.patch(`/organizations/${id}/work-dispatch`, { stopped: true, reason: 'x' }), { status: 400 });
});

t.test('resuming wakes workers that wait, where there is something for them', async (t) => {
  const { id } = await makeOrganization(owner);
  const path = `/organizations/${id}/work-dispatch`;
  t.notOk(await wakesPulls(app, () => owner.patch(path, { stopped: true })));
  await makeTask(owner, await makeProfile(owner, id));
  t.ok(await wakesPulls(app, () => owner.patch(path, { stopped: false })));
  t.notOk(await wakesPulls(app, () => owner.patch(path, { stopped: false })));
});

t.test('a deleted organization is gone at once: reads, writes, leases, capabilities, lists', async (t) => {
  const made = await makeOrganization(owner, { slug: 'short-lived' });
  const { id } = made;
  const profile = await makeProfile(owner, id);
  const tasks = await Promise.all([makeTask(owner, profile), makeTask(owner, profile), makeTask(owner, profile)]);
  const [running, claimed] = await pull(app, id, 2);
  if (!running || !claimed) return t.fail('nothing was pulled');
  const { runId, executionToken } = await started(app, running);
  const agent = owner.as(executionToken);
  t.match(await agent.get(`/internal/agent/organizations/${id}/status`), { status: 200 });

  const deleted = await owner.delete<Organization>(`/organizations/${id}`);
  t.match(deleted, { status: 200, data: { id, slug: 'short-lived' } });

  const missing = { status: 404, code: 'organization_not_found' };
  t.match(await owner.delete(`/organizations/${id}`), missing, 'a repeat');
  t.match(await owner.get(`/organizations/${id}`), missing);
  t.match(await owner.patch(`/organizations/${id}`, { name: 'x' }), missing);
  t.match(await owner.patch(`/organizations/${id}/work-dispatch`, { stopped: true }), missing);
  t.match(await owner.get(`/organizations/${id}/agent-profiles`), missing);
  t.match(await owner.get(`/organizations/${id}/agent-profiles/${profile.id}`), missing);
  t.match(await owner.get(`/organizations/${id}/members`), missing);
  t.match(await owner.get(`/organizations/${id}/tasks`), missing);
  t.match(await owner.get(`/organizations/${id}/tasks/${tasks[0]?.id}`), { status: 404 });
  t.match(await owner.get(`/organizations/${id}/runs`), missing);
  t.match(await owner.get(`/organizations/${id}/runs/${runId}`), { status: 404 });
  const { data } = await owner.get<Organization[]>('/organizations', { query: { limit: 200 } });
  t.notOk(data.some((one) => one.id === id));

  t.match(await agent.get(`/internal/agent/organizations/${id}/status`), { status: 401, code: 'agent_unauthorized' });
  const lease = { organizationId: id, leaseToken: running.leaseToken };
  const lost = { status: 409, code: 'run_lease_expired' };
  t.match(await app.service.post(`/internal/runs/${runId}/heartbeat`, lease), lost);
  t.match(await start(app, claimed), lost);
  t.strictSame(await pull(app, id, 10), []);

  // The slug is free while the rows are still being removed; the id is not.
  t.equal((await makeOrganization(owner, { slug: 'short-lived' })).slug, 'short-lived');
  t.match(await owner.post(`/organizations/${id}`, { slug: 'again', name: 'Again' }), {
    status: 409,
    code: 'state_conflict',
  });
});

t.test('a deletion leaves a job that removes the rest', async (t) => {
  const { id } = await makeOrganization(owner);
  await owner.delete(`/organizations/${id}`);
  const { rows } = await app.database.owner.query(
    `select j.task_identifier, p.payload from graphile_worker.jobs j
     join graphile_worker._private_jobs p using (id) where p.payload ->> 'organizationId' = $1`,
    [id],
  );
  t.strictSame(rows, [{ task_identifier: 'organizations__delete', payload: { organizationId: id } }]);
});
