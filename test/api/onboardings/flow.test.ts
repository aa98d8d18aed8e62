import { randomUUID } from 'node:crypto';
import t from 'tap';
import type { Onboarding } from '../../../api/onboardings/schema.ts';
import { openSite } from '../../engine/net/support.ts';
import { html } from '../../engine/website/support.ts';
import { PRIVATE, shop } from '../../jobs/onboardings/support.ts';
import { openJobs } from '../../jobs/support.ts';
import { expectSuccess, ownerPath, refusalOf, sqlOf, storedKeys } from '../../support/api_fixtures.ts';
import { startTestApp } from '../../support/app.ts';
import { claimTurn, completeTurn, startTurn } from '../../support/chat_fixtures.ts';
import { until } from '../../support/wait.ts';
import { complete, create, get, onboardingPath, publish, putSource, start } from './support.ts';

// The API, the jobs and a website on loopback, as they run for a customer.
const app = await startTestApp(t);
await publish(app);
await openJobs(t, app.database.url, { ...PRIVATE, STORAGE_URL: app.config.storageUrl });

const researched = (onboarding: Onboarding) =>
  until('the research is over', async () => {
    const now = await get(app, onboarding);
    return now.status !== 'researching' && now;
  });

type Summary = Readonly<{
  revision: number;
  documents: readonly Readonly<{
    path: string;
    kind: string;
    issue?: string;
    entries: readonly Readonly<{ key: string; title: string; value: unknown; evidence: string[] }>[];
  }>[];
}>;

t.test('a website and two files become an organization that knows what they say', async (t) => {
  const site = await openSite(t, shop());
  const created = await create(app, { name: 'Acme Flow', website: `${site.origin}/`, timezone: 'Europe/Berlin' });
  const handbook = randomUUID();
  expectSuccess(await putSource(app, created, '# Handbook\nWe answer within a day.\n', { id: handbook }), 201);
  const prices = { kind: 'file', fileName: 'prices.csv', mediaType: 'text/csv', department: 'growth' };
  expectSuccess(await putSource(app, created, 'lamp,9\n', prices), 201);
  const started = expectSuccess(await start(app, created));
  const review = await researched(started);
  t.match(review, { status: 'review', research: { status: 'completed', attempts: 1, error: null } });
  t.same(review.review?.warnings, []);
  t.ok(site.paths.includes('/about'));
  t.equal(review.review?.summary.evidence.length, 3);
  const evidence = new Set(review.review?.summary.evidence.map(({ id }) => id));
  t.ok(review.research.findings.length > 0);
  for (const finding of review.research.findings) t.ok(finding.evidence.every((id) => evidence.has(id)));

  // The interview: the chat's turns run before the organization is active.
  const messages = ownerPath(created, `/chats/${started.chatId}/messages`);
  const hello = { parts: [{ kind: 'text', text: 'What do we sell?' }] };
  expectSuccess(await app.owner.post(messages, hello), 202);
  const sql = sqlOf(app);
  const org = { organizationId: created.organizationId, profileId: '', profileKey: 'chat' };
  await completeTurn(sql.api, await startTurn(sql.api, await claimTurn(sql, org)));

  const done = expectSuccess(await complete(app, review));
  t.equal(done.status, 'completed');
  t.match(expectSuccess(await app.owner.get(ownerPath(created))), { status: 'active', name: 'Acme Flow' });
  t.equal(refusalOf(await app.owner.post(messages, hello)), '409 onboarding_chat_immutable');

  const summary = expectSuccess(await app.owner.get<Summary>(ownerPath(created, '/context/summary')));
  t.same(
    summary.documents.map(({ path, kind, issue }) => [path, kind, issue]),
    [
      ['facts.json', 'facts', undefined],
      ['sources.json', 'notes', undefined],
    ],
  );
  const entries = summary.documents.flatMap((document) => document.entries);
  const quoted = entries.find(({ key }) => key === `source-${handbook}`);
  t.match(quoted, { title: 'plan.md', value: '# Handbook\nWe answer within a day.\n', evidence: [handbook] });
  t.ok(entries.some(({ title, evidence: [id] }) => title === 'About Acme' && evidence.has(id ?? '')));
  t.ok(entries.some(({ key }) => key.startsWith('finding-')));
  const sources = expectSuccess(
    await app.owner.get<{ items: { origin: string }[] }>(ownerPath(created, '/context/sources')),
  );
  t.same(sources.items.map(({ origin }) => origin).sort(), ['onboarding', 'onboarding', ...Array(3).fill('research')]);
});

t.test('another website in review starts the research over, and nothing of the old one is left', async (t) => {
  const [wrong, right] = [
    await openSite(t, shop()),
    await openSite(t, shop(undefined, { '/': html('Right', [], 'We make lamps, and repair all of them.') })),
  ];
  const created = await create(app, { name: 'Typo', website: `${wrong.origin}/` });
  expectSuccess(await start(app, created));
  const review = await researched(created);
  const patch = { expectedGeneration: review.generation, website: `${right.origin}/` };
  const again = expectSuccess(await app.owner.patch<Onboarding>(onboardingPath(created, '/setup'), patch));
  t.match(again, { status: 'collecting', review: null, research: { findings: [] } });
  t.same(await storedKeys(app, created), [], 'its pages are gone');
  expectSuccess(await start(app, created));
  const second = await researched(created);
  t.match(second.review?.summary.evidence, [{ title: 'Right', urls: [`${right.origin}/`] }]);
  t.equal(expectSuccess(await complete(app, second)).status, 'completed');
});

t.test('without website and sources the research ends at once, with a warning that has to be allowed', async (t) => {
  const created = await create(app, { name: 'Nothing' });
  expectSuccess(await start(app, created));
  const review = await researched(created);
  t.match(review.review?.warnings, [{ code: 'no_evidence' }]);
  t.equal(refusalOf(await complete(app, review)), '409 request_failed has_warnings');
  t.equal(expectSuccess(await complete(app, review, { allowWarnings: true })).status, 'completed');
});

t.test('an onboarding that is discarded while it is researched goes with all it has', async (t) => {
  let release = () => {};
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  const site = await openSite(
    t,
    shop((path) => (path === '/about' ? held : undefined)),
  );
  const created = await create(app, { name: 'Discarded', website: `${site.origin}/` });
  expectSuccess(await putSource(app, created, '# Plan'), 201);
  expectSuccess(await start(app, created));
  await until('the site is being read', async () => site.paths.includes('/about'));
  expectSuccess(await app.owner.delete(onboardingPath(created)));
  release();
  await until('its files are gone', async () => (await storedKeys(app, created)).length === 0);
  await until('its rows are gone', async () => {
    const { rows } = await app.database.owner.query(
      `select from app.context_sources where organization_id = $1
       union all select from app.onboardings where organization_id = $1`,
      [created.organizationId],
    );
    return rows.length === 0;
  });
});
