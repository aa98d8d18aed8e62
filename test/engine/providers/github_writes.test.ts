import t from 'tap';
import { github } from '../../../engine/providers/github/index.ts';
import { at, credential, MARKER, open, READS, SHA, WRITES } from './github_calls.ts';
import { fails, json } from './support.ts';
import { failsAsDocumented, toolsOf } from './tool_calls.ts';

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
