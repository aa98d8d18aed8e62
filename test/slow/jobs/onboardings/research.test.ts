import { createHash } from 'node:crypto';
import t from 'tap';
import { openSite } from '../../../engine/net/support.ts';
import { codes, ended, evidenceOf, PRIVATE, pathsOf, SHOP, shop, start } from '../../../jobs/onboardings/support.ts';
import { openJobs, queued } from '../../../jobs/support.ts';
import { openModel } from '../../../support/model_server.ts';
import {
  createOnboarding,
  placeOf,
  publishCatalog,
  putSource,
  read,
  step,
} from '../../../support/onboarding_fixtures.ts';
import { openSql } from '../../../support/transitions.ts';
import { until } from '../../../support/wait.ts';

const sql = await openSql(t);
await publishCatalog(sql);

t.test('a website becomes evidence and findings, and the onboarding is in review', async (t) => {
  const site = await openSite(t, shop());
  const { storage } = await openJobs(t, sql.url, PRIVATE);
  const onboarding = await ended(sql, await start(sql, { website: site.origin }));
  t.match(onboarding, { status: 'review', research_status: 'completed', research_attempts: 1, research_error: null });
  t.same(codes(onboarding), []);
  const evidence = await evidenceOf(sql, onboarding);
  t.match(evidence, [
    { title: 'Acme', status: 'ingested', kind: 'page', media_type: 'text/html', provenance_urls: [`${site.origin}/`] },
    { title: 'About Acme', provenance_urls: [`${site.origin}/about`] },
    { title: 'Prices' },
  ]);
  t.equal(evidence.length, 3);
  for (const { storage_key: key, sha256, provenance_urls: urls } of evidence) {
    const chunks: Buffer[] = [];
    for await (const chunk of await storage.get(key)) chunks.push(chunk);
    const bytes = Buffer.concat(chunks);
    t.equal(createHash('sha256').update(bytes).digest('hex'), sha256);
    t.equal(bytes.toString(), SHOP[new URL(urls[0] ?? '').pathname]);
  }
  const host = new URL(site.origin).host;
  t.match(onboarding.findings, [
    { claim: `The title of ${host} is “Acme”.`, source_ids: [evidence[0]?.id], origin: 'job' },
    { claim: `${host} describes itself: “All about Acme.”`, source_ids: [evidence[0]?.id] },
  ]);
  t.equal(onboarding.findings.length, 2);
});

t.test('a website that cannot be reached is a warning, and so is having nothing', async (t) => {
  await openJobs(t, sql.url);
  const refused = await ended(sql, await start(sql, { website: 'http://127.0.0.1:8080/' }));
  t.match(refused, { status: 'review', research_error: null });
  t.match(codes(refused), ['website_refused', 'no_evidence']);
  t.same(codes(await ended(sql, await start(sql, { website: null }))), ['no_evidence']);
  const put = await createOnboarding(sql, { website: null });
  await putSource(sql.api, placeOf(put));
  t.same(codes(await ended(sql, await step(sql.api, placeOf(put), 'start'))), [], 'sources alone are enough');
});

t.test("the organization's blocked domains are not asked", async (t) => {
  const site = await openSite(t, shop());
  await openJobs(t, sql.url, PRIVATE);
  const onboarding = await createOnboarding(sql, { website: site.origin });
  await sql.owner.query(
    `update app.organizations set constraints = constraints || '{"blockedDomains": ["127.0.0.2"]}' where id = $1`,
    [onboarding.organization_id],
  );
  t.match(codes(await ended(sql, await step(sql.api, placeOf(onboarding), 'start'))), [
    'website_blocked',
    'no_evidence',
  ]);
  t.equal(site.connections(), 0);
});

t.test('a model says what the evidence says, and claims without evidence are dropped and reported', async (t) => {
  const site = await openSite(t, shop());
  const model = await openModel(t, ({ body }) => {
    const { evidence } = JSON.parse(body.messages[1]?.content ?? '');
    const prices = evidence.find(({ title }: { title: string }) => title === 'Prices');
    const claims = [
      { claim: 'Acme has prices.', evidence: [prices.id] },
      { claim: 'Acme is rich.', evidence: ['E99'] },
    ];
    return JSON.stringify({ claims });
  });
  const settings = {
    ...PRIVATE,
    RESEARCH_LLM_URL: model.url,
    RESEARCH_LLM_MODEL: 'small',
    RESEARCH_LLM_KEY: 'model-key',
  };
  const { logged } = await openJobs(t, sql.url, settings);
  const onboarding = await ended(sql, await start(sql, { website: site.origin }));
  const evidence = await evidenceOf(sql, onboarding);
  t.match(onboarding.findings.at(-1), { claim: 'Acme has prices.', source_ids: [evidence[2]?.id] });
  t.equal(onboarding.findings.length, 3);
  t.match(onboarding.review?.warnings, [{ code: 'claims_without_evidence', message: /“Acme is rich\.”/ }]);
  t.match(model.requests, [{ authorization: 'Bearer model-key' }]);
  t.notMatch(JSON.stringify(logged), /model-key/);
});

t.test('a model that fails is asked twice, and is a warning', async (t) => {
  const site = await openSite(t, shop());
  const model = await openModel(t, (_request, res) => void res.writeHead(500).end());
  await openJobs(t, sql.url, { ...PRIVATE, RESEARCH_LLM_URL: model.url, RESEARCH_LLM_MODEL: 'small' });
  const onboarding = await ended(sql, await start(sql, { website: site.origin }));
  t.match(onboarding, { status: 'review', findings: [{}, {}] });
  t.same(codes(onboarding), ['summary_failed']);
  t.equal(model.requests.length, 2);
});

t.test('a website that is silent costs its share of the time, and what was read stays', async (t) => {
  const site = await openSite(
    t,
    shop((path) => (path === '/about' ? new Promise(() => {}) : undefined)),
  );
  await openJobs(t, sql.url, { ...PRIVATE, RESEARCH_SECONDS: '10' });
  const onboarding = await ended(sql, await start(sql, { website: site.origin }));
  t.match(onboarding, { status: 'review', research_error: null });
  t.same(
    (await evidenceOf(sql, onboarding)).map(({ title }) => title),
    ['Acme'],
  );
});

t.test('an onboarding that is discarded meanwhile gets nothing any more', async (t) => {
  let release = () => {};
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  const site = await openSite(
    t,
    shop((path) => (path === '/about' ? held : undefined)),
  );
  const { storage } = await openJobs(t, sql.url, PRIVATE);
  const onboarding = await start(sql, { website: site.origin });
  await until('it reads the second page', () => site.paths.includes('/about'));
  await step(sql.api, placeOf(onboarding), 'discard');
  release();
  await until('the job is over', async () => (await queued(sql.owner, 'onboardings__research')).length === 0);
  t.notOk(site.paths.includes('/prices'), 'it leaves off at the next write');
  await until('its files are gone', async () => {
    return (await storage.list(`organizations/${onboarding.organization_id}/`)).objects.length === 0;
  });
});

t.test('a job that comes late does nothing', async (t) => {
  const site = await openSite(t, shop());
  const onboarding = await start(sql, { website: site.origin });
  const payload = { organizationId: onboarding.organization_id, generation: onboarding.generation - 1 };
  await sql.owner.query(`select graphile_worker.add_job('onboardings__research', $1::json)`, [JSON.stringify(payload)]);
  await openJobs(t, sql.url, PRIVATE);
  const done = await ended(sql, onboarding);
  await until('both are over', async () => (await queued(sql.owner, 'onboardings__research')).length === 0);
  t.equal((await read(sql, placeOf(onboarding))).generation, done.generation);
  t.same(pathsOf(site), ['/', '/about', '/prices']);
});
