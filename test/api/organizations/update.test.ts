import t from 'tap';
import type { Organization } from '../../../api/organizations/schema.ts';
import { startTestApp } from '../../support/app.ts';
import { createClient, issuePaths } from '../../support/http.ts';
import { defaults } from '../../support/organization_defaults.ts';
import { makeOrganization } from '../../support/owner_api.ts';

const { owner, url } = await startTestApp(t);

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

t.test('in open mode nobody without the owner’s token lets agents do more outside', async (t) => {
  const nobody = createClient(url);
  const { id, ...before } = await makeOrganization(owner, { constraints: { blockedDomains: ['evil.example'] } });
  const path = `/organizations/${id}`;
  for (const body of [
    { constraints: { approvalRequiredForRisk: [] } },
    { constraints: { blockedDomains: null } },
    { constraints: null },
    { constraints: {}, name: 'Other' },
    { config: { limits: { maxDailyActions: 1_000 } } },
    { config: { limits: null } },
    { config: null },
  ]) {
    t.match(await nobody.patch(path, body), { status: 401, code: 'owner_unauthorized' }, JSON.stringify(body));
    const another = nobody.as('another-token-0123456789-0123456789-0123');
    t.match(await another.patch(path, body), { status: 401 }, JSON.stringify(body));
  }
  t.strictSame((await nobody.get<Organization>(path)).data, { id, ...before });
  t.match(await nobody.patch(path, { name: 'Other', config: { limits: { maxConcurrentRuns: 2 } } }), { status: 200 });
  t.match(await owner.patch(path, { constraints: { approvalRequiredForRisk: [] } }), { status: 200 });
});
