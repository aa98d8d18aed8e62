import t from 'tap';
import { github } from '../../../engine/providers/github/index.ts';
import { CursorError, TooMuchError } from '../../../engine/providers/tool.ts';
import { API, at, credential, open, READS, SHA } from './github_calls.ts';
import { fails, json } from './support.ts';

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
