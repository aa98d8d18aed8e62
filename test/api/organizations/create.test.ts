import { randomUUID } from 'node:crypto';
import t from 'tap';
import type { Organization } from '../../../api/organizations/schema.ts';
import { publishBuiltinCatalog } from '../../../engine/catalog/index.ts';
import { refusalOf } from '../../support/api_fixtures.ts';
import { startTestApp } from '../../support/app.ts';
import { issuePaths } from '../../support/http.ts';
import { defaults } from '../../support/organization_defaults.ts';
import { makeOrganization } from '../../support/owner_api.ts';

const { owner, services } = await startTestApp(t);
const nowhere = randomUUID();

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

t.test('an organization that is provisioned takes a task of nothing but a title', async (t) => {
  const id = randomUUID();
  const body = { slug: `s-${id}`, name: 'Provisioned', provision: true };
  const early = await owner.post(`/organizations/${id}`, body);
  t.equal(refusalOf(early), '503 request_failed', 'without a catalog');
  t.equal((await owner.get(`/organizations/${id}`)).status, 404, 'nothing is left of it');
  await publishBuiltinCatalog(services.db);
  const made = await owner.post<Organization>(`/organizations/${id}`, body);
  t.equal(made.status, 201);
  t.notOk('provision' in made.data);
  const { data: profiles } = await owner.get<{ id: string; kind: string }[]>(`/organizations/${id}/agent-profiles`);
  const operator = profiles.find((profile) => profile.kind === 'operator');
  const task = await owner.post(`/organizations/${id}/tasks`, { title: 'hello' });
  t.match(task, { status: 201, data: { ownerAgentProfileId: operator?.id, status: 'pending' } });
  t.equal(refusalOf(await owner.post(`/organizations/${id}`, body)), '409 state_conflict in_use', 'sent twice');
  const kinds = async (provision: object) => {
    const one = await makeOrganization(owner, { provision });
    const { data } = await owner.get<{ kind: string; department: string | null }[]>(
      `/organizations/${one.id}/agent-profiles`,
    );
    return data.map(({ kind, department }) => department ?? kind).sort();
  };
  t.same(await kinds({ departments: ['support'] }), ['chat', 'operator', 'support'], 'though it is not enabled');
  t.same(await kinds({ departments: [] }), ['chat', 'operator']);
  for (const provision of ['yes', 1, null, {}, { departments: ['sales'] }, { departments: ['growth', 'growth'] }]) {
    const refused = await owner.post(`/organizations/${randomUUID()}`, { slug: 'x', name: 'x', provision });
    t.match(issuePaths(refused), [/^provision/], JSON.stringify(provision));
  }
  const { id: bare } = await makeOrganization(owner);
  const ownerless = await owner.post(`/organizations/${bare}/tasks`, { title: 'hello' });
  t.equal(refusalOf(ownerless), '400 validation_failed unknown_profile');
  t.match(JSON.stringify(ownerless.body), /agent-profiles\/provision/, 'says how to get one');
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

t.test('a create sent again with its Idempotency-Key is returned again', async (t) => {
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
