import { randomUUID } from 'node:crypto';
import t from 'tap';
import type { AgentProfile } from '../../../api/agent_profiles/schema.ts';
import type { Onboarding } from '../../../api/onboardings/schema.ts';
import type { Organization } from '../../../api/organizations/schema.ts';
import { canonicalSha256 } from '../../../engine/canonical_json.ts';
import { providers } from '../../../engine/providers/index.ts';
import { expectSuccess, ownerPath, refusalOf } from '../../support/api_fixtures.ts';
import { startTestApp } from '../../support/app.ts';
import { issuePaths, type Reply } from '../../support/http.ts';
import { FAILURE } from '../../support/onboarding_fixtures.ts';
import { complete, create, get, inState, onboardingPath, publish, putSource, research, start } from './support.ts';

const app = await startTestApp(t);

t.test('without a catalog nothing can be started', async (t) => {
  const onboarding = await create(app);
  t.equal(refusalOf(await start(app, onboarding)), '503 request_failed');
  t.same(await get(app, onboarding), onboarding);
  await publish(app);
  t.equal((await start(app, onboarding)).status, 200);
});

const organization = async (onboarding: Onboarding) =>
  expectSuccess(await app.owner.get<Organization>(ownerPath(onboarding)));

t.test('both bodies make an organization that is being onboarded', async (t) => {
  const slug = `lamps-${randomUUID().slice(0, 8)}`;
  const first = await create(app, { name: ' Lamps ', slug, timezone: 'europe/berlin', departments: ['support'] });
  t.same(first, {
    organizationId: first.organizationId,
    status: 'collecting',
    generation: 1,
    setup: {
      name: 'Lamps',
      website: null,
      timezone: 'Europe/Berlin',
      defaultCurrency: null,
      departments: ['support'],
      summary: null,
    },
    sources: [],
    integrations: [],
    chatId: null,
    research: { status: 'not_started', attempts: 0, startedAt: null, finishedAt: null, error: null, findings: [] },
    review: null,
    createdAt: first.createdAt,
    updatedAt: first.updatedAt,
  });
  const made = await organization(first);
  t.match(made, { slug, name: 'Lamps', status: 'onboarding', onboardedAt: null });
  t.match(made.config, { timezone: 'Europe/Berlin', departments: { growth: { enabled: false } } });
  t.equal(made.workDispatchStoppedAt, null, 'that is its owner’s');

  const name = `Müller & Söhne's ${randomUUID().slice(0, 8)}`;
  const body = { name, website: 'HTTPS://Example.com', timezone: 'UTC', defaultCurrency: 'EUR' };
  const second = await create(app, body);
  const expected = { website: 'https://example.com/', defaultCurrency: 'EUR' };
  t.match(second.setup, { ...expected, departments: ['growth', 'engineering', 'support'] });
  const derived = (await organization(second)).slug;
  t.match(derived, /^muller-sohnes-[0-9a-f]{8}$/);
  t.equal((await organization(await create(app, body))).slug, `${derived}-2`);
  t.match((await organization(await create(app, { name: '日本' }))).slug, /^org-[0-9a-f]{12}$/);
  const again = await app.owner.post('/organization-onboardings', {
    name: 'x',
    slug,
    timezone: 'UTC',
    departments: [],
  });
  t.equal(refusalOf(again), '409 request_failed in_use');
});

t.test('a bare domain is a website that is reached by https', async (t) => {
  const websiteOf = async (website: string) => {
    const { data } = await app.owner.post('/organization-onboardings', { name: 'Bare Domain', website });
    return (data['setup'] as { website: string }).website;
  };
  t.equal(await websiteOf(' Lamps.example '), 'https://lamps.example/');
  t.equal(await websiteOf('lamps.example:8443/de?a=b:c'), 'https://lamps.example:8443/de?a=b:c');
  t.equal(await websiteOf('lämpchen.example'), 'https://xn--lmpchen-5wa.example/');
  t.equal(await websiteOf('http://lamps.example'), 'http://lamps.example/', 'a scheme that is given stays');
  const created = await create(app, { name: 'Bare Domain' });
  const patch = { expectedGeneration: 1, website: ' Lamps.example ' };
  const changed = await app.owner.patch<Onboarding>(onboardingPath(created, '/setup'), patch);
  t.match(expectSuccess(changed), { generation: 2, setup: { website: 'https://lamps.example/' } }, 'also by a change');
});

t.test('a body of neither shape is refused', async (t) => {
  const complete = { name: 'x', slug: 'y', timezone: 'UTC', departments: ['growth'] };
  const bad: readonly Record<string, unknown>[] = [
    {},
    { name: '' },
    { name: 'x', slug: 'y' },
    { ...complete, website: 'https://x.example' },
    { ...complete, departments: ['sales'] },
    { ...complete, departments: ['growth', 'growth'] },
    { ...complete, slug: 'A b' },
    { ...complete, timezone: 'Mars/Base' },
    { name: 'x', website: 'ftp://x.example' },
    { name: 'x', website: 'https://me:secret@x.example' },
    { name: 'x', website: 'example' },
    { name: 'x', website: 'me@x.example' },
    { name: 'x', website: '//x.example' },
    { name: 'x', defaultCurrency: 'eur' },
    { name: 'x', nonsense: 1 },
  ];
  for (const body of bad) {
    const reply = await app.owner.post('/organization-onboardings', body);
    t.equal(reply.status, 400, JSON.stringify(body));
    t.equal(reply.code, 'request_failed');
    t.ok(issuePaths(reply).length > 0);
  }
  const pathsOf = async (body: unknown) => issuePaths(await app.owner.post('/organization-onboardings', body));
  t.same(await pathsOf({ ...complete, slug: 'A b' }), ['slug'], 'a wrong value is named, not the shape that was meant');
  t.same(await pathsOf({ ...complete, departments: ['growth', 'growth'] }), ['departments']);
  t.same(await pathsOf({ ...complete, website: 'https://x.example' }), ['website']);
  t.same(await pathsOf({ name: 'x', website: 'example' }), ['website']);
});

const CALLS: Readonly<Record<string, (o: Onboarding) => Promise<Reply<Onboarding>>>> = {
  setup: (o) =>
    app.owner.patch(onboardingPath(o, '/setup'), { expectedGeneration: o.generation, summary: 'Lamps of all kinds' }),
  disposition: (o) =>
    app.owner.put(onboardingPath(o, '/integrations/crm/disposition'), {
      expectedGeneration: o.generation,
      disposition: 'connect_now',
    }),
  put: (o) => putSource(app, o, 'more'),
  take: (o) => app.owner.delete(onboardingPath(o, `/sources/${o.sources[0]?.id ?? randomUUID()}`)),
  start: (o) => start(app, o),
  retry: (o) => app.owner.post(onboardingPath(o, '/public-research/retry'), { expectedGeneration: o.generation }),
  complete: (o) => complete(app, o, o.review ? {} : { reviewSha256: '0'.repeat(64) }),
  discard: (o) => app.owner.delete(onboardingPath(o)),
};

/** The response to each call in each state: a status, and the state that follows. */
const TABLE: Readonly<Record<Onboarding['status'], Readonly<Record<string, string>>>> = {
  collecting: {
    setup: '200 collecting',
    disposition: '200 collecting',
    put: '201 collecting',
    take: '404 request_failed not_found',
    start: '200 researching',
    discard: '200 discarded',
  },
  researching: { discard: '200 discarded' },
  research_failed: {
    setup: '200 research_failed',
    disposition: '200 research_failed',
    put: '201 research_failed',
    take: '200 research_failed',
    start: '200 researching',
    retry: '202 researching',
    discard: '200 discarded',
  },
  review: {
    setup: '200 review',
    disposition: '200 review',
    put: '201 collecting',
    take: '200 collecting',
    complete: '200 completed',
    discard: '200 discarded',
  },
  completed: {},
  discarded: {},
};

for (const [state, permitted] of Object.entries(TABLE) as [Onboarding['status'], Record<string, string>][]) {
  t.test(`each call in the state ${state}`, async (t) => {
    for (const [name, call] of Object.entries(CALLS)) {
      const onboarding = await inState(app, state);
      const reply = await call(onboarding);
      const seen = reply.status < 400 ? `${reply.status} ${reply.data.status}` : refusalOf(reply);
      const otherwise = state === 'discarded' ? '404 request_failed' : '409 request_failed not_permitted';
      t.equal(seen, permitted[name] ?? otherwise, name);
      if (reply.status < 400 && name !== 'discard') t.same(await get(app, onboarding), reply.data);
      if (reply.status >= 400 && state !== 'discarded') t.same(await get(app, onboarding), onboarding);
    }
  });
}

t.test('stale generations and digests are refused, and say what holds', async (t) => {
  const failed = await inState(app, 'research_failed');
  const stale = { ...failed, generation: failed.generation - 1 };
  for (const name of ['setup', 'disposition', 'retry']) {
    t.equal(refusalOf((await CALLS[name]?.(stale)) ?? failing()), '409 request_failed stale', name);
  }
  const review = await inState(app, 'review');
  t.equal(refusalOf(await complete(app, review, { reviewSha256: '0'.repeat(64) })), '409 request_failed stale');
  for (const body of [
    {},
    { reviewSha256: 'x' },
    { reviewSha256: review.review?.sha256, allowWarnings: 1 },
    { expectedGeneration: 1 },
  ]) {
    const reply = await app.owner.post(onboardingPath(review, '/complete'), body);
    t.equal(`${reply.status} ${reply.code}`, '400 request_failed', JSON.stringify(body));
  }
  for (const expectedGeneration of [0, -1, 1.5, '1', null, 2 ** 31]) {
    const reply = await app.owner.patch(onboardingPath(review, '/setup'), { expectedGeneration });
    t.equal(`${reply.status} ${reply.code}`, '400 request_failed', String(expectedGeneration));
  }
});

function failing(): never {
  throw new Error('no such call');
}

t.test('setup: null takes away, a repeat changes nothing, and the organization follows', async (t) => {
  const created = await create(app, { name: 'Before', website: 'https://x.example', defaultCurrency: 'EUR' });
  const path = onboardingPath(created, '/setup');
  const patch = { name: 'After', website: null, timezone: 'Asia/Tokyo', departments: ['growth'], summary: 'Lamps' };
  const changed = expectSuccess(await app.owner.patch<Onboarding>(path, { expectedGeneration: 1, ...patch }));
  t.match(changed, { generation: 2, setup: { ...patch, defaultCurrency: 'EUR' } });
  const made = await organization(created);
  t.match(made, { name: 'After', config: { timezone: 'Asia/Tokyo', departments: { support: { enabled: false } } } });
  t.same(expectSuccess(await app.owner.patch<Onboarding>(path, { expectedGeneration: 2, ...patch })), changed);
  for (const body of [{ name: null }, { timezone: null }, { departments: null }, { slug: 'x' }, { summary: '' }]) {
    const reply = await app.owner.patch(path, { expectedGeneration: 2, ...body });
    t.equal(`${reply.status} ${reply.code}`, '400 request_failed', JSON.stringify(body));
  }
});

t.test('dispositions: the last word counts, and keys and values are checked', async (t) => {
  let onboarding = await create(app);
  const put = (key: string, body: object) =>
    app.owner.put<Onboarding>(onboardingPath(onboarding, `/integrations/${key}/disposition`), {
      expectedGeneration: onboarding.generation,
      ...body,
    });
  onboarding = expectSuccess(await put('crm', { disposition: 'unknown' }));
  onboarding = expectSuccess(await put('billing', { disposition: 'connect_now', departments: ['support'] }));
  onboarding = expectSuccess(await put('crm', { disposition: 'not_used', departments: [] }));
  t.same(onboarding.integrations, [
    { integrationKey: 'billing', disposition: 'connect_now', departments: ['support'] },
    { integrationKey: 'crm', disposition: 'not_used', departments: [] },
  ]);
  for (const [key, body] of [
    ['CRM', { disposition: 'unknown' }],
    ['a--b', { disposition: 'unknown' }],
    ['crm', {}],
    ['crm', { disposition: 'later' }],
    ['crm', { disposition: 'unknown', departments: ['sales'] }],
  ] as const) {
    const reply = await put(key, body);
    t.equal(`${reply.status} ${reply.code}`, '400 request_failed', `${key} ${JSON.stringify(body)}`);
  }
});

t.test('the research fails, is retried, ends in a review, and the completion makes the organization', async (t) => {
  const created = await create(app, { name: 'Flow', website: 'https://x.example' });
  const key = randomUUID();
  expectSuccess(await putSource(app, created, '# We make lamps\n', { id: key }), 201);
  expectSuccess(
    await putSource(app, created, 'a,b\n1,2\n', {
      kind: 'file',
      fileName: 'prices.csv',
      mediaType: 'text/csv',
      department: 'growth',
    }),
    201,
  );
  const started = expectSuccess(await start(app, created));
  t.match(started, { status: 'researching', research: { status: 'queued', attempts: 1 }, review: null });
  const chat = expectSuccess(await app.owner.get(ownerPath(created, `/chats/${started.chatId}`)));
  t.match(chat, { isOnboardingChat: true, status: 'open' });
  const failed = await research(app, started, FAILURE);
  t.match(failed.research, { status: 'failed', error: { code: 'broken' }, attempts: 1 });
  const retried = expectSuccess((await CALLS['retry']?.(failed).then((reply) => reply)) ?? failing(), 202);
  const findings = [{ claim: 'They make lamps', evidence: [key] }];
  const warnings = [{ code: 'website_unreachable', message: 'The website does not respond.' }];
  const review = await research(app, retried, { status: 'completed', findings, warnings });
  t.match(review, { status: 'review', research: { status: 'completed', attempts: 2, findings }, review: { warnings } });
  t.equal(
    review.review?.sha256,
    canonicalSha256({ summary: review.review?.summary, warnings: review.review?.warnings }),
  );
  t.equal(refusalOf(await complete(app, review)), '409 request_failed has_warnings');
  const message = { parts: [{ kind: 'text', text: 'Hello' }] };
  const messages = ownerPath(created, `/chats/${started.chatId}/messages`);
  const { assistantMessage } = expectSuccess(
    await app.owner.post<{ assistantMessage: { id: string } }>(messages, message),
    202,
  );
  t.equal(refusalOf(await complete(app, review, { allowWarnings: true })), '409 request_failed reply_active');
  expectSuccess(await app.owner.post(`${messages}/${assistantMessage.id}/cancel`));
  const done = expectSuccess(await complete(app, review, { allowWarnings: true }));
  t.match(done, { status: 'completed', review: { sha256: review.review?.sha256 } });
  t.same(await get(app, created), done);

  const made = await organization(created);
  t.match(made, { status: 'active', workDispatchStoppedAt: null });
  t.ok(made.onboardedAt);
  const profiles = expectSuccess(await app.owner.get<AgentProfile[]>(ownerPath(created, '/agent-profiles')));
  t.same(profiles.map((profile) => profile.key).sort(), ['chat', 'engineering', 'growth', 'operator', 'support']);
  t.equal(refusalOf(await app.owner.post(messages, message)), '409 onboarding_chat_immutable');
  const patched = await app.owner.patch(ownerPath(created, `/chats/${started.chatId}`), { title: 'x' });
  t.equal(refusalOf(patched), '409 onboarding_chat_immutable');

  type Summary = { revision: number; documents: { path: string; entries: { key: string; value: unknown }[] }[] };
  const published = expectSuccess(await app.owner.get<Summary>(ownerPath(created, '/context/summary')));
  t.equal(published.revision, 1);
  const entries = Object.fromEntries(
    published.documents.flatMap((document) => document.entries.map((entry) => [entry.key, entry.value])),
  );
  t.match(entries, { name: 'Flow', website: 'https://x.example/', [`source-${key}`]: '# We make lamps\n' });
  t.ok(Object.values(entries).includes('They make lamps'));
  const growth = expectSuccess(
    await app.owner.get<Summary>(ownerPath(created, '/context/summary'), { query: { scope: 'growth' } }),
  );
  t.match(growth.documents, [{ path: 'sources.json', entries: [{ title: 'prices.csv', value: 'a,b\n1,2\n' }] }]);
});

t.test('the completion makes what is to be connected, as its provider is', async (t) => {
  let onboarding = await inState(app, 'review');
  for (const [key, disposition] of Object.entries({ 'upstash-redis': 'connect_later', stripe: 'connect_now' })) {
    const path = onboardingPath(onboarding, `/integrations/${key}/disposition`);
    const body = { expectedGeneration: onboarding.generation, disposition, departments: ['growth'] };
    onboarding = expectSuccess(await app.owner.put<Onboarding>(path, body));
  }
  t.match(onboarding.review?.warnings, [{ code: 'integration_not_connected' }]);
  t.equal(refusalOf(await complete(app, onboarding)), '409 request_failed has_warnings');
  expectSuccess(await complete(app, onboarding, { allowWarnings: true }));
  const { rows } = await app.database.owner.query(
    `select i.key, i.provider, i.name, i.departments, i.settings_required,
       (select count(*)::integer from app.integration_tools t where t.integration_id = i.id) as tools
     from app.integrations i where i.organization_id = $1 order by i.key`,
    [onboarding.organizationId],
  );
  const expected = ['stripe', 'upstash-redis'].map((key) => {
    const provider = providers.get(key);
    return {
      key,
      provider: key,
      name: provider?.title,
      departments: ['growth'],
      settings_required: provider?.settings?.required,
      tools: provider?.tools.length,
    };
  });
  t.same(rows, expected);
});

t.test('two completions at once: one wins, and publishes one revision', async (t) => {
  const review = await inState(app, 'review');
  const replies = await Promise.all([complete(app, review), complete(app, review), complete(app, review)]);
  t.same(replies.map((reply) => (reply.status === 200 ? '200' : refusalOf(reply))).sort(), [
    '200',
    '409 request_failed not_permitted',
    '409 request_failed not_permitted',
  ]);
  const { rows } = await app.database.owner.query(
    'select revision from app.context_revisions where organization_id = $1',
    [review.organizationId],
  );
  t.same(rows, [{ revision: 1 }]);
});

t.test('an onboarding that is not there, or that the organization never had', async (t) => {
  const onboarding = await inState(app, 'review');
  for (const [name, call] of Object.entries(CALLS)) {
    const reply = await call({ ...onboarding, organizationId: randomUUID() });
    t.equal(refusalOf(reply), '404 request_failed', name);
  }
  const id = randomUUID();
  expectSuccess(await app.owner.post(`/organizations/${id}`, { name: 'Plain', slug: `plain-${id}` }), 201);
  t.equal(refusalOf(await app.owner.get(onboardingPath({ organizationId: id }))), '404 request_failed');
  t.equal(refusalOf(await app.owner.get('/organizations/x/onboarding')), '400 request_failed invalid_format');
  const deleted = await inState(app, 'review');
  expectSuccess(await app.owner.delete(ownerPath(deleted)));
  t.equal(refusalOf(await app.owner.get(onboardingPath(deleted))), '404 request_failed');
  t.equal(refusalOf(await complete(app, deleted)), '404 request_failed');
  t.same(await get(app, onboarding), onboarding);
});

t.test('a discarded onboarding takes its organization along', async (t) => {
  const onboarding = await inState(app, 'researching');
  const gone = expectSuccess(await app.owner.delete<Onboarding>(onboardingPath(onboarding)));
  t.equal(gone.status, 'discarded');
  t.equal(refusalOf(await app.owner.get(ownerPath(onboarding))), '404 organization_not_found');
  t.equal(refusalOf(await app.owner.get(onboardingPath(onboarding))), '404 request_failed');
});

t.test('a creation that is sent again with its key makes one organization', async (t) => {
  const options = { headers: { 'idempotency-key': randomUUID() } };
  const body = { name: `Once ${randomUUID()}` };
  const first = await app.owner.post<Onboarding>('/organization-onboardings', body, options);
  const again = await app.owner.post<Onboarding>('/organization-onboardings', body, options);
  t.equal(again.data.organizationId, expectSuccess(first, 201).organizationId);
});
