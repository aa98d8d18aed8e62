import type * as Tap from 'tap';
import t from 'tap';
import { github } from '../../../engine/providers/github/index.ts';
import { CursorError, TooMuchError } from '../../../engine/providers/tool.ts';
import { fails, json, openClient, openServer, type Reply } from './support.ts';
import { ACTION, failsAsDocumented, toolsOf } from './tool_calls.ts';

const API = 'https://api.github.com';
const SHA = 'a'.repeat(40);
const MARKER = `<!-- action:${ACTION} -->`;
const at = { owner: 'acme', repo: 'site' };
const credential = { kind: 'github_token', token: `ghp_${'x'.repeat(36)}` };
const settings = { kind: 'github', owner: 'Acme', repositories: ['Site', 'shop'] };

async function open(test: Tap.Test, reply: Reply) {
  const server = await openServer(test, reply);
  const client = openClient(test, { [API]: server.origin });
  return { server, client, tools: toolsOf(github, { client, credential, settings }) };
}

const READS: Readonly<Record<string, readonly [args: object, path: string, query: object]>> = {
  'repositories.get': [{}, '/repos/acme/site', {}],
  'issues.list': [
    {
      state: 'all',
      labels: ['a', 'b'],
      since: '2030-01-01T00:00:00Z',
      sort: 'updated',
      direction: 'asc',
      perPage: 100,
    },
    '/repos/acme/site/issues',
    {
      state: 'all',
      labels: 'a,b',
      since: '2030-01-01T00:00:00Z',
      sort: 'updated',
      direction: 'asc',
      per_page: '100',
      page: '1',
    },
  ],
  'issues.get': [{ issueNumber: 7 }, '/repos/acme/site/issues/7', {}],
  'issues.comments.list': [{ issueNumber: 7 }, '/repos/acme/site/issues/7/comments', { per_page: '30', page: '1' }],
  'issues.search': [
    { q: 'slow "page load"' },
    '/search/issues',
    { q: 'slow "page load" repo:acme/site is:issue', per_page: '30', page: '1' },
  ],
  'pulls.list': [{ base: 'main' }, '/repos/acme/site/pulls', { base: 'main', per_page: '30', page: '1' }],
  'pulls.get': [{ pullNumber: 8 }, '/repos/acme/site/pulls/8', {}],
  'pulls.files.list': [{ pullNumber: 8 }, '/repos/acme/site/pulls/8/files', { per_page: '30', page: '1' }],
  'pulls.comments.list': [{ pullNumber: 8 }, '/repos/acme/site/pulls/8/comments', { per_page: '30', page: '1' }],
  'pulls.search': [{ q: 'x' }, '/search/issues', { q: 'x repo:acme/site is:pr', per_page: '30', page: '1' }],
  'commits.list': [
    { sha: 'main', path: 'a b.md' },
    '/repos/acme/site/commits',
    { sha: 'main', path: 'a b.md', per_page: '30', page: '1' },
  ],
  'commits.get': [{ ref: 'feat/ü' }, '/repos/acme/site/commits/feat/%C3%BC', {}],
  'commits.search': [{ q: 'x' }, '/search/commits', { q: 'x repo:acme/site', per_page: '30', page: '1' }],
  'contents.get': [{ path: 'docs/a b?.md', ref: 'v1' }, '/repos/acme/site/contents/docs/a%20b%3F.md', { ref: 'v1' }],
  'contents.search': [{ q: 'x' }, '/search/code', { q: 'x repo:acme/site', per_page: '30', page: '1' }],
};

t.test('each read asks as documented, and returns what is of use', async (test) => {
  const item = {
    number: 7,
    html_url: 'https://github.com/acme/site/issues/7',
    url: `${API}/repos/acme/site/issues/7`,
    node_id: 'x',
    repository_url: `${API}/repos/acme/site`,
    repository: { full_name: 'acme/site', id: 1, url: 'x' },
    user: { login: 'anna', avatar_url: 'https://avatars.example/1' },
  };
  const kept = {
    number: 7,
    html_url: 'https://github.com/acme/site/issues/7',
    repository: { full_name: 'acme/site', id: 1 },
    user: { login: 'anna' },
  };
  let isList = false;
  const { server, tools } = await open(test, ({ url }, res) => {
    isList = url.searchParams.has('page');
    const data = url.pathname.startsWith('/search/') ? { total_count: 9, items: [item] } : isList ? [item] : item;
    json(res, 200, data, { link: `<${API}/x?page=2>; rel="next", <${API}/x?page=9>; rel="last"` });
  });
  const keys = github.tools.filter(({ effect }) => effect === 'read').map(({ key }) => key.replace('github.', ''));
  test.same(keys.sort(), Object.keys(READS).sort());
  for (const [key, [args, path, query]] of Object.entries(READS)) {
    const result = await tools.read(`github.${key}`, { ...at, ...args }).catch((error: unknown) => error);
    const call = server.calls.at(-1);
    test.equal(call?.method, 'GET', key);
    test.equal(call?.url.pathname, path, key);
    test.same(Object.fromEntries(call?.url.searchParams ?? []), query, key);
    test.match(call?.headers, {
      authorization: `Bearer ${credential.token}`,
      accept: 'application/vnd.github+json',
      'x-github-api-version': '2022-11-28',
    });
    if (key === 'contents.get') continue;
    const next = isList || key === 'commits.get' ? { nextCursor: '2' } : {};
    test.same(result, { data: isList ? [kept] : kept, ...next }, key);
  }
});

t.test('a page is named by its number, and the last one says so', async (test) => {
  const link: Record<string, string> = { 2: `<${API}/x?page=3>; rel="next"`, 3: `<${API}/x?page=1>; rel="first"` };
  const { server, tools } = await open(test, ({ url }, res) =>
    json(res, 200, [], { link: link[url.searchParams.get('page') ?? ''] ?? '' }),
  );
  test.equal((await tools.read('github.issues.list', at, '2')).nextCursor, '3');
  test.equal((await tools.read('github.issues.list', at, '3')).nextCursor, null);
  for (const cursor of ['', '0', '-1', '1.5', 'x', '999999']) {
    await test.rejects(tools.read('github.issues.list', at, cursor), CursorError, cursor);
  }
  test.equal(server.calls.length, 2);
});

t.test('a search tells nothing of other repositories', async (test) => {
  const of = (name: string) => ({ id: name, repository_url: `${API}/repos/${name}` });
  const { server, client, tools } = await open(test, (_call, res) =>
    json(
      res,
      200,
      { total_count: 3, items: [of('ACME/site'), of('other/site'), { id: 'none' }] },
      {
        link: `<${API}/x>; rel="next"`,
      },
    ),
  );
  const args = { ...at, q: 'x', perPage: 100 };
  test.same(await tools.read('github.issues.search', args), { data: [{ id: 'ACME/site' }], nextCursor: '2' });
  await tools.read('github.issues.search', args, '10');
  await test.rejects(tools.read('github.issues.search', args, '11'), CursorError);
  test.match(client.taken.at(-1), [{ key: 'github:account:i1:30/0.5' }]);
  for (const q of ['x repo:other/site', 'org:other', '-user:me', '(REPO :a/b)', 'a OR owner:b', 'enterprise:x']) {
    test.match(tools.issues('github.contents.search', 'read', { ...at, q }), [{ path: ['q'] }], q);
  }
  test.same(tools.issues('github.contents.search', 'read', { ...at, q: 'in:title monorepo: x' }), []);
  test.equal(server.calls.length, 2);
});

t.test('what GitHub does not show is not taken for the end', async (test) => {
  let page: (number: number) => object = () => [];
  let next = '';
  const { server, tools } = await open(test, ({ url }, res) =>
    json(res, 200, page(Number(url.searchParams.get('page') ?? 1)), { link: next }),
  );
  const refused = async (key: string, args: object, cursor: string, said: RegExp) => {
    const before = server.calls.length;
    await test.rejects(tools.read(key, { ...at, ...args }, cursor), { name: 'CursorError', message: said }, key);
    test.equal(server.calls.length, before, 'GitHub is not asked');
  };
  const nextOf = async (key: string, args: object, cursor?: string) =>
    (await tools.read(key, { ...at, ...args }, cursor)).nextCursor;

  const search = 'github.issues.search';
  let total = 1_000;
  page = () => ({ total_count: total, incomplete_results: false, items: [] });
  for (const [perPage, last] of [
    [100, 10],
    [30, 34],
  ] as const) {
    const args = { q: 'x', perPage };
    total = 1_000;
    test.equal(await nextOf(search, args, `${last}`), null, 'the last of a thousand');
    total = 1_001;
    test.equal(await nextOf(search, args, `${last}`), `${last + 1}`, 'one more than a thousand');
    await refused(search, args, `${last + 1}`, /1,000 results that GitHub shows: narrow/);
  }
  page = () => ({ total_count: 3, incomplete_results: true, items: [] });
  await test.rejects(tools.read(search, { ...at, q: 'x' }), TooMuchError, 'GitHub gave up on the way');

  const files = (count: number) => Array.from({ length: count }, (_, number) => ({ filename: `${number}` }));
  for (const [key, args, last, whole, pageOf] of [
    ['github.pulls.files.list', { pullNumber: 8, perPage: 70 }, '43', 60, files],
    ['github.commits.get', { ref: SHA }, '10', 300, (count: number) => ({ sha: SHA, files: files(count) })],
  ] as const) {
    page = () => pageOf(whole - 1);
    test.equal(await nextOf(key, args, last), null, `${key}, 2,999 files`);
    page = () => pageOf(whole);
    test.equal(await nextOf(key, args, last), `${Number(last) + 1}`, `${key}, as many as GitHub shows`);
    await refused(key, args, `${Number(last) + 1}`, /3,000 files that GitHub shows/);
  }
  page = (number) => ({ sha: SHA, files: [{ filename: `${number}` }] });
  next = `<${API}/x?page=3>; rel="next"`;
  test.same(await tools.read('github.commits.get', { ...at, ref: SHA }, '2'), {
    data: { sha: SHA, files: [{ filename: '2' }] },
    nextCursor: '3',
  });
  page = () => [];
  test.equal(await nextOf('github.issues.list', {}, '10000'), '10001');
  await refused('github.issues.list', {}, '10001', /10,000 pages: narrow/);

  page = () => files(999);
  const folder = { ...at, path: 'docs' };
  test.match((await tools.read('github.contents.get', folder)).data, { length: 999 });
  page = () => files(1_000);
  await test.rejects(tools.read('github.contents.get', folder), { name: 'TooMuchError', message: /first 1,000/ });
});

t.test('text of a file comes as text, the rest in base64, and a long one as its blob', async (test) => {
  const files: Record<string, object> = {
    'a.md': {
      type: 'file',
      sha: SHA,
      size: 3,
      encoding: 'base64',
      content: `${Buffer.from('ü\n').toString('base64')}\n`,
    },
    'a.png': {
      type: 'file',
      sha: SHA,
      size: 3,
      encoding: 'base64',
      content: Buffer.from([0xff, 0, 1]).toString('base64'),
    },
    'long.md': {
      type: 'file',
      sha: SHA,
      size: 2_000_000,
      encoding: 'none',
      content: '',
      download_url: 'https://x/?token=planted',
    },
    'huge.md': { type: 'file', sha: SHA, size: 90_000_000, encoding: 'none', content: '' },
    module: { type: 'submodule', sha: SHA, size: 0, submodule_git_url: 'git://x' },
    docs: [{ type: 'file', name: 'a.md', sha: SHA, download_url: 'https://x/?token=planted' }],
  };
  const { server, tools } = await open(test, ({ url }, res) => {
    if (url.pathname.includes('/git/blobs/')) {
      return { sha: SHA, encoding: 'base64', content: Buffer.from('long').toString('base64') };
    }
    const found = files[url.pathname.replace('/repos/acme/site/contents/', '')];
    return found ?? json(res, 404, {});
  });
  const read = async (path: string) => (await tools.read('github.contents.get', { ...at, path })).data;
  test.same(await read('a.md'), { type: 'file', sha: SHA, size: 3, encoding: 'utf-8', content: 'ü\n' });
  test.same(await read('a.png'), { type: 'file', sha: SHA, size: 3, encoding: 'base64', content: '/wAB' });
  test.same(await read('long.md'), { type: 'file', sha: SHA, size: 2_000_000, encoding: 'utf-8', content: 'long' });
  test.equal(server.calls.at(-1)?.url.pathname, `/repos/acme/site/git/blobs/${SHA}`);
  await fails(test, read('huge.md'), 'too_large', 'a huge one');
  test.same(await read('module'), { type: 'submodule', sha: SHA, size: 0 });
  test.same(await read('docs'), [{ type: 'file', name: 'a.md', sha: SHA }]);
});

const WRITES: Readonly<
  Record<string, readonly [args: object, request: string, body: object, response: object, result: object]>
> = {
  'issues.create': [
    { title: 'Slow', body: 'It is.', labels: ['bug'] },
    'POST /repos/acme/site/issues',
    { title: 'Slow', body: `It is.\n\n${MARKER}`, labels: ['bug'] },
    { number: 7, html_url: 'https://github.com/7' },
    { number: 7, url: 'https://github.com/7' },
  ],
  'issues.comments.create': [
    { issueNumber: 7, body: 'Yes.' },
    'POST /repos/acme/site/issues/7/comments',
    { body: `Yes.\n\n${MARKER}` },
    { id: 70, html_url: 'https://github.com/70' },
    { id: 70, url: 'https://github.com/70' },
  ],
  'issues.update': [
    { issueNumber: 7, state: 'closed', labels: [], body: '' },
    'PATCH /repos/acme/site/issues/7',
    { state: 'closed', labels: [], body: '' },
    { number: 7, html_url: 'https://github.com/7' },
    { number: 7, url: 'https://github.com/7' },
  ],
  'pulls.create': [
    { title: 'Fast', head: 'fast', base: 'main', draft: true },
    'POST /repos/acme/site/pulls',
    { title: 'Fast', body: MARKER, head: 'fast', base: 'main', draft: true },
    { number: 8, html_url: 'https://github.com/8' },
    { number: 8, url: 'https://github.com/8' },
  ],
  'pulls.comments.create': [
    { pullNumber: 8, body: 'Why?', commitId: SHA, path: 'a.ts', line: 4 },
    'POST /repos/acme/site/pulls/8/comments',
    { body: `Why?\n\n${MARKER}`, commit_id: SHA, path: 'a.ts', line: 4, side: 'RIGHT' },
    { id: 80, html_url: 'https://github.com/80' },
    { id: 80, url: 'https://github.com/80' },
  ],
  'pulls.merge': [
    { pullNumber: 8, sha: SHA, mergeMethod: 'squash' },
    'PUT /repos/acme/site/pulls/8/merge',
    { sha: SHA, merge_method: 'squash' },
    { sha: 'b'.repeat(40), merged: true, message: 'merged' },
    { number: 8, sha: 'b'.repeat(40) },
  ],
};

t.test('each write is sent once, as documented', async (test) => {
  let response: object = {};
  const { server, tools } = await open(test, () => response);
  const keys = github.tools.filter(({ effect }) => effect === 'write').map(({ key }) => key.replace('github.', ''));
  test.same(keys.sort(), Object.keys(WRITES).sort());
  for (const [key, [args, request, body, given, result]] of Object.entries(WRITES)) {
    response = given;
    test.same(await tools.execute(`github.${key}`, { ...at, ...args }), result, key);
    const [call, ...more] = server.calls.splice(0);
    test.equal(more.length, 0);
    test.equal(`${call?.method} ${call?.url.pathname}`, request);
    test.same(JSON.parse(call?.body ?? ''), body, key);
    test.match(call?.headers, { 'content-type': 'application/json', authorization: /^Bearer / });
  }
});

t.test('what goes wrong says whether a write was done', async (test) => {
  for (const [key, [args]] of Object.entries(WRITES)) {
    await failsAsDocumented(test, key, 'write', async (reply) => {
      const { server, tools } = await open(test, (_call, res) => void reply(res));
      return { done: tools.execute(`github.${key}`, { ...at, ...args }), sent: () => server.calls.length };
    });
  }
  await failsAsDocumented(test, 'a read', 'read', async (reply) => {
    const { server, tools } = await open(test, (_call, res) => void reply(res));
    return { done: tools.read('github.issues.list', at), sent: () => server.calls.length };
  });
  for (const status of [405, 409, 422]) {
    const { tools } = await open(test, (_call, res) => json(res, status, { message: 'planted' }));
    const error = await fails(
      test,
      tools.execute('github.pulls.merge', { ...at, pullNumber: 8, sha: SHA }),
      'failed',
      '',
    );
    test.equal(error.status, status);
  }
  const { tools } = await open(test, (_call, res) => json(res, 403, { message: 'secondary rate limit' }));
  await fails(test, tools.read('github.issues.list', at), 'rate_limited', 'a limit that comes as 403');
});

t.test('what was made is found by its marker', async (test) => {
  const lists: Readonly<Record<string, [path: string, result: object]>> = {
    'issues.create': ['/repos/acme/site/issues', { number: 7, url: 'u' }],
    'issues.comments.create': ['/repos/acme/site/issues/comments', { id: 70, url: 'u' }],
    'pulls.create': ['/repos/acme/site/pulls', { number: 7, url: 'u' }],
    'pulls.comments.create': ['/repos/acme/site/pulls/comments', { id: 70, url: 'u' }],
  };
  for (const [key, [path, result]] of Object.entries(lists)) {
    let body: string | null = `x\n\n${MARKER}`;
    const { server, tools } = await open(test, () => [
      { id: 1, number: 1, html_url: 'v', body: null },
      { id: 70, number: 7, html_url: 'u', body },
    ]);
    const args = { ...at, ...WRITES[key]?.[0] };
    test.same(await tools.lookUp(`github.${key}`, args), { outcome: 'found', result }, key);
    const { url, method } = server.calls[0] ?? {};
    test.equal(`${method} ${url?.pathname}`, `GET ${path}`);
    test.match(Object.fromEntries(url?.searchParams ?? []), { sort: 'created', direction: 'desc', per_page: '100' });
    if (key.endsWith('s.create') && !key.includes('comments')) test.equal(url?.searchParams.get('state'), 'all');
    body = 'x';
    test.same(await tools.lookUp(`github.${key}`, args), { outcome: 'none' }, `${key}: it may come yet`);
  }
});

t.test('a change of an issue is seen in the issue', async (test) => {
  const args = { ...at, issueNumber: 7, title: 'New', body: 'text', labels: ['a', 'b'], state: 'closed' };
  const done = {
    number: 7,
    html_url: 'u',
    title: 'New',
    body: `text\n\n${MARKER}`,
    labels: [{ name: 'b' }, 'a'],
    state: 'closed',
  };
  let found: object = done;
  const { tools } = await open(test, () => found);
  const lookUp = () => tools.lookUp('github.issues.update', args);
  test.same(await lookUp(), { outcome: 'found', result: { number: 7, url: 'u' } });
  for (const other of [{ title: 'Old' }, { body: 'text' }, { labels: ['a'] }, { state: 'open' }]) {
    found = { ...done, ...other };
    test.same(await lookUp(), { outcome: 'none' }, JSON.stringify(other));
  }
  test.match(tools.issues('github.issues.update', 'write', { ...at, issueNumber: 7 }), [{ path: [] }]);
});

t.test('a merge that is not there yet may come', async (test) => {
  let found: object = {};
  const { tools } = await open(test, () => found);
  const lookUp = () => tools.lookUp('github.pulls.merge', { ...at, pullNumber: 8, sha: SHA });
  found = { merged: false, head: { sha: SHA } };
  test.same(await lookUp(), { outcome: 'none' });
  found = { merged: true, head: { sha: SHA }, merge_commit_sha: 'c' };
  test.same(await lookUp(), { outcome: 'found', result: { number: 8, sha: 'c' } });
  found = { merged: true, head: { sha: 'd' }, merge_commit_sha: 'c' };
  test.same(await lookUp(), { outcome: 'none' }, 'at another commit');
  test.equal(github.tools.find(({ key }) => key === 'github.pulls.merge')?.risk, 'high');
});

t.test('nothing outside of the settings is reached', async (test) => {
  const { server, client, tools } = await open(test, () => ({}));
  for (const { key, effect } of github.tools) {
    const args = { ...(effect === 'read' ? READS : WRITES)[key.replace('github.', '')]?.[0], ...at };
    test.same(tools.issues(key, effect, args), [], key);
    test.match(tools.issues(key, effect, { ...args, repo: 'other' }), [{ path: ['repo'] }], key);
    test.match(tools.issues(key, effect, { ...args, owner: 'other' }), [{ path: ['owner'] }], key);
    const none = toolsOf(github, { client, credential, settings: null });
    test.match(none.issues(key, effect, args), [{ path: ['owner'] }], key);
    for (const repo of ['..', '.', 'a/b', '']) {
      test.match(tools.issues(key, effect, { ...args, repo }), [{ path: ['repo'] }], `${key} ${repo}`);
    }
  }
  for (const path of ['..', 'a/../b', './a', 'a//b', '/a', 'a/']) {
    test.match(tools.issues('github.contents.get', 'read', { ...at, path }), [{ path: ['path'] }], path);
    test.match(tools.issues('github.commits.get', 'read', { ...at, ref: path }), [{ path: ['ref'] }], path);
  }
  test.same(tools.issues('github.contents.get', 'read', { ...at, path: '' }), []);
  test.equal(server.calls.length, 0);
});

t.test('a summary says what a person has to know', async (test) => {
  const { tools } = await open(test, () => ({}));
  const summary = (key: string, args = {}) => tools.summary(`github.${key}`, { ...at, ...WRITES[key]?.[0], ...args });
  test.equal(summary('issues.create'), 'Open an issue in acme/site: “Slow”, labels “bug”, with the text “It is.”');
  test.equal(
    summary('issues.comments.create'),
    'Comment on issue or pull request #7 of acme/site with the text “Yes.”',
  );
  test.equal(summary('issues.update'), 'Change issue #7 of acme/site: close it, labels “none”, text “”');
  test.equal(
    summary('pulls.create'),
    'Open a draft of a pull request in acme/site from “fast” into “main”: “Fast”, without a text',
  );
  test.equal(
    summary('pulls.comments.create'),
    'Comment on line 4 of “a.ts” in pull request #8 of acme/site with the text “Why?”',
  );
  test.equal(summary('pulls.merge'), `Merge pull request #8 of acme/site at commit ${SHA}, method squash`);
  test.match(summary('issues.create', { body: 'x'.repeat(5_000) }), /“x{1000}…” \(5000 characters\)$/);
});

t.test('a repository that has moved is none of the settings: nothing follows it', async (test) => {
  const { server, tools } = await open(test, ({ url }, res) => {
    if (url.pathname.startsWith('/repositories/')) return {};
    return void res.writeHead(url.pathname.endsWith('/issues') ? 307 : 301, { location: '/repositories/1' }).end();
  });
  await fails(test, tools.read('github.repositories.get', at), 'not_found', 'read');
  await fails(test, tools.execute('github.issues.create', { ...at, title: 'A' }), 'not_found', 'written');
  test.equal(server.calls.length, 2);
});
