import { createHash, randomUUID } from 'node:crypto';
import t from 'tap';
import {
  expectSuccess,
  type Fields,
  ownerPath,
  rawCode,
  rawRequest,
  refusalOf,
  sqlOf,
} from '../../support/api_fixtures.ts';
import { startTestApp } from '../../support/app.ts';
import { entry, publishDocuments, storeSource } from '../../support/context_files.ts';
import { insertSource, markSource } from '../../support/context_fixtures.ts';
import { createTestOrganization, type TestOrganization } from '../../support/fixtures.ts';

const app = await startTestApp(t);
const sql = sqlOf(app);
const { storage } = app.services;
const elsewhere = await createTestOrganization(sql);

type Sources = { items: Fields[]; issues: Fields[] };
const sources = (org: TestOrganization, query: Record<string, string | number> = {}) =>
  app.owner.get<Sources>(ownerPath(org, '/context/sources'), { query });

const contentPath = (org: TestOrganization, query: Record<string, string>) =>
  ownerPath(org, `/context/files/content?${new URLSearchParams(query)}`);

t.test('the files of all scopes are listed, and read by their path', async (test) => {
  const org = await createTestOrganization(sql);
  await publishDocuments(sql, storage, org, {
    'facts.json': { entries: [entry('a', { value: 'organization' })] },
    'Größe 100%.json': { kind: 'notes' },
  });
  await publishDocuments(
    sql,
    storage,
    org,
    { 'facts.json': { entries: [entry('a', { value: 'growth' })] }, 'plan.json': { kind: 'strategy' } },
    { scope: 'growth' },
  );
  const { items, issues } = expectSuccess(
    await app.owner.get<{ items: Fields[]; issues: Fields[] }>(ownerPath(org, '/context/files')),
  );
  test.same(issues, []);
  test.same(
    items.map(({ scope, path, kind, revision }) => [scope, path, kind, revision]),
    [
      ['organization', 'Größe 100%.json', 'notes', 1],
      ['organization', 'facts.json', 'facts', 1],
      ['growth', 'facts.json', 'facts', 1],
      ['growth', 'plan.json', 'strategy', 1],
    ],
  );
  test.equal(items[0]?.['uri'], `org://${org.organizationId}/context/organization/Gr%C3%B6%C3%9Fe%20100%25.json`);
  const read = async (query: Record<string, string>) => {
    const response = await app.owner.fetch(contentPath(org, query));
    return {
      status: response.status,
      value: ((await response.json()) as { entries?: Fields[] }).entries?.[0]?.['value'],
    };
  };
  test.same(await read({ path: 'facts.json' }), { status: 200, value: 'organization' });
  test.same(await read({ path: 'facts.json', scope: 'growth' }), { status: 200, value: 'growth' });
  test.match(await read({ path: 'plan.json' }), { status: 200 });
  test.match(await read({ path: 'Größe 100%.json' }), { status: 200 });
  test.match(await read({ path: 'plan.json', scope: 'organization' }), { status: 404 });
  test.match(await read({ path: 'facts.json/' }), { status: 400 });
});

t.test('content has entity tags, ranges and HEAD', async (test) => {
  const org = await createTestOrganization(sql);
  await publishDocuments(sql, storage, org, { 'facts.json': { entries: [entry('a', { value: 'x' })] } });
  const path = contentPath(org, { path: 'facts.json' });
  const ask = (headers: Record<string, string> = {}, method = 'GET') => rawRequest(app.url, { path, headers, method });
  const whole = await ask();
  const etag = `"${createHash('sha256').update(whole.body).digest('hex')}"`;
  test.match(whole, {
    status: 200,
    headers: {
      etag,
      'content-type': 'application/octet-stream',
      'x-media-type': 'application/json',
      'accept-ranges': 'bytes',
      'x-content-type-options': 'nosniff',
      'content-length': String(whole.body.length),
      'content-disposition': 'attachment; filename=facts.json',
    },
  });
  const head = await ask({}, 'HEAD');
  test.match([head.status, head.body.length, head.headers.etag], [200, 0, etag]);
  const part = await ask({ range: 'bytes=2-8' });
  test.match([part.status, part.body.toString()], [206, 'entries']);
  test.equal((await ask({ 'if-none-match': etag })).status, 304);
  const beyond = await ask({ range: 'bytes=9999-' });
  test.match([beyond.status, rawCode(beyond)], [416, 'range_not_satisfiable']);
});

t.test('no selector leads out of the published documents', async (test) => {
  const org = await createTestOrganization(sql);
  await publishDocuments(sql, storage, org, { 'facts.json': {} });
  await publishDocuments(sql, storage, elsewhere, { 'other.json': {} });
  const base = ownerPath(org, '/context/files/content');
  const refused = [
    '', '?path=', '?path=/etc/passwd', '?path=../facts.json', '?path=..%2ffacts.json', '?path=%2e%2e/facts.json',
    '?path=a/../facts.json', '?path=./facts.json', '?path=a//facts.json', '?path=facts.json%00', '?path=%00',
    '?path=..%5cfacts.json', '?path=\\facts.json', '?path=%252e%252e%252ffacts.json', '?path=%252Fetc', '?path=facts.json.',
    '?path=facts.json%20', '?path=C:%5Cfacts.json', '?path=C:/facts.json', '?path=file:///etc/passwd',
    '?path=facts.json&path=facts.json', '?path=facts.json&scope=sales', '?path=facts.json&other=1', '?path=%ff%2e', '?path=a%0ab',
  ]; // biome-ignore format: a list of attacks
  for (const query of refused) {
    const response = await rawRequest(app.url, { path: `${base}${query}` });
    test.match([response.status, rawCode(response)], [400, 'validation_failed'], query);
  }
  const absent = [
    'other.json',
    `organizations/${org.organizationId}/context/facts.json`,
    'organization/facts.json',
    'FACTS.json',
  ];
  for (const path of absent) {
    test.equal(refusalOf(await app.owner.get(contentPath(org, { path }))), '404 not_found', path);
  }
  const nowhere = { ...org, organizationId: randomUUID() };
  for (const path of [
    '/context/summary',
    '/context/files',
    '/context/files/content?path=a',
    '/context/sources',
    '/context/health',
  ]) {
    test.equal(refusalOf(await app.owner.get(ownerPath(nowhere, path))), '404 organization_not_found', path);
  }
});

t.test('sources are paged newest first, with what is wrong with them', async (test) => {
  const org = await createTestOrganization(sql);
  const made: string[] = [];
  for (const name of ['one', 'two', 'three', 'four', 'five']) {
    made.unshift((await storeSource(sql, storage, org, name, { fileName: `${name}.txt` })).id);
  }
  await storeSource(sql, storage, elsewhere, 'x');
  const first = await sources(org, { limit: 2 });
  const ids = (reply: typeof first) => expectSuccess(reply).items.map(({ id }) => id);
  test.same(ids(first), made.slice(0, 2));
  const second = await sources(org, { limit: 2, cursor: first.body.pagination.nextCursor ?? '' });
  test.same(ids(second), made.slice(2, 4));
  const back = await sources(org, { limit: 2, cursor: second.body.pagination.previousCursor ?? '' });
  test.same(ids(back), made.slice(0, 2));
  test.same(ids(await sources(org)), made);
  test.equal(
    (await sources(org, { limit: 3, cursor: first.body.pagination.nextCursor ?? '', status: 'failed' })).status,
    400,
  );
  test.equal((await sources(org, { limit: 0 })).status, 400);

  const [failing = ''] = made;
  await markSource(sql.api, org, failing, 'failed', { code: 'not_text', message: 'is not UTF-8 text' });
  const page = await insertSource(sql, org, {
    origin: 'research',
    kind: 'page',
    status: 'stored',
    department: 'growth',
    title: 'About us',
    provenanceUrls: ['https://example.com/about'],
    dedupeKey: 'x',
  });
  const all = expectSuccess(await sources(org));
  test.equal(all.items.length, 6, 'nothing is hidden');
  test.match(all.items[0], {
    id: page.id,
    origin: 'research',
    status: 'stored',
    kind: 'page',
    title: 'About us',
    department: 'growth',
    provenanceUrls: ['https://example.com/about'],
    error: null,
    uri: `org://${org.organizationId}/context/sources/${page.id}`,
  });
  test.same(
    all.issues.map(({ sourceId, code }) => [sourceId, code]),
    [
      [page.id, 'bytes_missing'],
      [failing, 'not_text'],
    ],
  );
  test.same(ids(await sources(org, { status: 'failed' })), [failing]);
  test.same(ids(await sources(org, { origin: 'research', department: 'growth' })), [page.id]);
  test.same(ids(await sources(elsewhere)).length, 1);
});

t.test('a source’s bytes come as they were retained', async (test) => {
  const org = await createTestOrganization(sql);
  const source = await storeSource(sql, storage, org, 'größe', {
    fileName: 'plan "x".md',
    mediaType: 'text/markdown',
  });
  const path = ownerPath(org, `/context/sources/${source.id}/content`);
  const whole = await rawRequest(app.url, { path });
  test.match(whole, {
    status: 200,
    headers: { 'content-type': 'application/octet-stream', 'x-media-type': 'text/markdown' },
  });
  test.equal(whole.body.toString(), 'größe');
  test.match((await rawRequest(app.url, { path, headers: { range: 'bytes=0-1' } })).body.toString(), 'gr');
  test.equal((await rawRequest(app.url, { path, method: 'HEAD' })).headers['content-length'], '7');
  for (const [other, code] of [
    [ownerPath(elsewhere, `/context/sources/${source.id}/content`), '404 not_found'],
    [ownerPath(org, `/context/sources/${randomUUID()}/content`), '404 not_found'],
    [ownerPath(org, '/context/sources/..%2f..%2fx/content'), '400 validation_failed'],
  ] as const) {
    test.match(refusalOf(await app.owner.get(other)), code, other);
  }
});
