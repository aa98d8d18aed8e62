import { mkdir, readdir, readFile, rm, utimes, writeFile } from 'node:fs/promises';
import path from 'node:path';
import t from 'tap';
import { removeAbandoned, withFolder } from '../../../../engine/git/folders.ts';
import { MirrorTooLargeError, openMirrors } from '../../../../engine/git/mirrors.ts';
import { GitMissingError, gitText } from '../../../../engine/git/program.ts';
import { type Remote, remoteOf } from '../../../../engine/git/remote.ts';
import type { OpenConnection } from '../../../../engine/integrations/index.ts';
import { providers } from '../../../../engine/providers/index.ts';
import { createProviderClient, ProviderError } from '../../../../engine/providers/outgoing/index.ts';
import { commitFile, seedRepository, TOKEN } from '../../../api/git/support.ts';
import { openFolder } from '../../../support/folders.ts';
import { gitDone, openGitOrigin } from '../../../support/git_origin.ts';

const origin = await openGitOrigin(t, TOKEN);
const client = createProviderClient({
  allowPrivateAddresses: true,
  origins: new Map([['https://github.com', origin.origin]]),
  budgets: { take: async () => undefined, postpone: async () => {} },
  observe: () => {},
});
t.teardown(() => client.close());
const github = providers.get('github');
if (!github) throw new Error('there is no GitHub');
const provider = github;
const signal = new AbortController().signal;

function remote(name: string, organizationId = 'org-1', token = TOKEN): Remote {
  const connection = {
    target: { organizationId, integrationId: 'integration', revision: 1 },
    provider,
    integration: {} as OpenConnection['integration'],
    grantedScopes: null,
    access: {
      credential: { kind: 'github_token', token },
      settings: { kind: 'github', owner: 'acme', repositories: [name] },
    },
    context: { client, account: organizationId },
    secrets: [token],
  } satisfies OpenConnection;
  return remoteOf(connection, 'acme', name);
}

async function world(options: { maxBytes?: number; needed?: readonly string[]; gone?: readonly string[] } = {}) {
  const { maxBytes = 1e9, needed = [], gone = [] } = options;
  const folder = path.join(await openFolder(t), 'mirrors');
  const useOf = async (organizationId: string) =>
    needed.includes(organizationId) ? 'needed' : gone.includes(organizationId) ? 'gone' : 'idle';
  return { folder, mirrors: openMirrors({ folder, maxBytes, useOf }) };
}

/** The mirrors on the disk, by organization. */
const organizations = async (folder: string) => {
  const found: string[] = [];
  for (const organization of await readdir(folder)) {
    const names = await readdir(path.join(folder, organization, 'integration'));
    if (names.some((name) => name.endsWith('.git'))) found.push(organization);
  }
  return found.sort();
};

const mirrorOf = async (folder: string, organization = 'org-1') => {
  const parent = path.join(folder, organization, 'integration');
  const name = (await readdir(parent)).find((one) => one.endsWith('.git'));
  if (name === undefined) throw new Error('there is no mirror');
  return path.join(parent, name);
};

const bare = await seedRepository(t, origin);
const main = await gitDone(bare, 'rev-parse', 'main');

t.test('a snapshot has what the provider has, and is independent of its mirror', async (t) => {
  const { folder, mirrors } = await world();
  const place = await openFolder(t);
  const first = await mirrors.snapshot(remote('shop'), path.join(place, 'a'), signal);
  t.same([first.refs.get('refs/heads/main'), first.defaultBranch], [main, 'refs/heads/main']);
  await gitDone(bare, 'branch', 'extra', 'main');
  await gitDone(bare, 'tag', 'v1', 'main');
  const second = await mirrors.snapshot(remote('shop'), path.join(place, 'b'), signal);
  t.same([...second.refs.keys()].sort(), ['refs/heads/extra', 'refs/heads/main', 'refs/tags/v1']);
  await gitDone(bare, 'branch', '--delete', '--force', 'extra');
  const third = await mirrors.snapshot(remote('shop'), path.join(place, 'c'), signal);
  t.notOk(third.refs.has('refs/heads/extra'), 'what is gone there is gone here');
  await rm(folder, { recursive: true });
  t.equal(await gitText({ folder: path.join(place, 'a'), args: ['cat-file', '-t', main], signal }), 'commit\n');
  t.equal((await gitDone(path.join(place, 'a'), 'fsck', '--connectivity-only')).trim(), '');
  t.notOk((await readFile(path.join(place, 'a', 'config'), 'utf8')).includes('github'));
});

t.test('many at once share the fetches of one mirror', async (t) => {
  const { mirrors } = await world();
  const place = await openFolder(t);
  const all = await Promise.all(
    Array.from({ length: 5 }, (_, n) => mirrors.snapshot(remote('shop'), path.join(place, String(n)), signal)),
  );
  t.ok(all.every(({ refs }) => refs.get('refs/heads/main') === main));
});

t.test('what a crash leaves breaks nothing', async (t) => {
  const { folder, mirrors } = await world();
  const place = await openFolder(t);
  await mirrors.snapshot(remote('shop'), path.join(place, 'a'), signal);
  const mirror = await mirrorOf(folder);
  // In the middle of a fetch, with locks of git that nobody holds.
  await writeFile(path.join(mirror, 'dirty'), '');
  await writeFile(path.join(mirror, 'packed-refs.lock'), '');
  await writeFile(path.join(mirror, 'objects', 'pack', 'tmp_pack_x'), 'half');
  const again = await mirrors.snapshot(remote('shop'), path.join(place, 'b'), signal);
  t.equal(again.refs.get('refs/heads/main'), main);
  t.notOk((await readdir(path.join(mirror, 'objects', 'pack'))).includes('tmp_pack_x'));
  // In the middle of its making.
  await rm(path.join(mirror, 'HEAD'));
  t.equal((await mirrors.snapshot(remote('shop'), path.join(place, 'c'), signal)).refs.get('refs/heads/main'), main);
  // Of a process that has ended.
  await writeFile(mirror.replace(/\.git$/, '.lock'), JSON.stringify({ pid: 1, startedAt: 'long ago' }));
  t.equal((await mirrors.snapshot(remote('shop'), path.join(place, 'd'), signal)).refs.get('refs/heads/main'), main);

  const ends = new AbortController();
  origin.faults.reply = () => {
    ends.abort(new Error('it leaves'));
    return true;
  };
  t.teardown(() => {
    origin.faults.reply = undefined;
  });
  await t.rejects(mirrors.snapshot(remote('shop'), path.join(place, 'e'), ends.signal), /it leaves/);
  origin.faults.reply = undefined;
  t.equal((await mirrors.snapshot(remote('shop'), path.join(place, 'f'), signal)).refs.get('refs/heads/main'), main);
});

t.test('private folders of processes that died are removed, and no others', async (t) => {
  const parent = await openFolder(t);
  const dead = path.join(parent, 'dead');
  await mkdir(dead);
  await writeFile(path.join(dead, 'owner.json'), JSON.stringify({ pid: 1, startedAt: 'long ago' }));
  const [old, young] = [path.join(parent, 'old'), path.join(parent, 'young')];
  for (const folder of [old, young]) await mkdir(folder);
  await utimes(old, 1, 1);
  await withFolder(parent, async (mine) => {
    t.equal(await removeAbandoned(parent), 2);
    t.same((await readdir(parent)).sort(), [path.basename(mine), 'young'].sort());
  });
  t.same(await readdir(parent), ['young']);
});

t.test('mirrors keep to their bound: the longest unused go, those that are needed stay', async (t) => {
  const work = path.join(await openFolder(t), 'big');
  const big = origin.create('acme/big');
  await gitDone(path.dirname(work), 'clone', '--quiet', big, work);
  const { randomBytes } = await import('node:crypto');
  await commitFile(work, 'noise', randomBytes(300_000));
  await gitDone(work, 'push', '--quiet', 'origin', 'HEAD:main');
  const { folder, mirrors } = await world({ maxBytes: 700_000, needed: ['org-1'], gone: ['org-9'] });
  const place = await openFolder(t);
  let number = 0;
  const use = (organization: string) => {
    number += 1;
    return mirrors.snapshot(remote('big', organization), path.join(place, String(number)), signal);
  };
  await use('org-9');
  await use('org-1');
  t.same(
    await organizations(folder),
    ['org-1', 'org-9'].slice(0, 2),
    'looked at every ten minutes, or above the bound',
  );
  await use('org-2');
  t.same(await organizations(folder), ['org-1', 'org-2'], 'what is gone goes first');
  await use('org-3');
  t.same(await organizations(folder), ['org-1', 'org-3']);
  const small = await world({ maxBytes: 1_000 });
  await t.rejects(small.mirrors.snapshot(remote('big'), path.join(place, 'x'), signal), MirrorTooLargeError);
  t.same(await organizations(small.folder), []);
});

t.test('what the provider refuses has a reason, without its words', async (t) => {
  const { mirrors } = await world();
  const place = await openFolder(t);
  const cases = [
    [401, 'rejected'],
    [403, 'forbidden'],
    [404, 'not_found'],
    [429, 'rate_limited'],
    [500, 'unavailable'],
  ] as const;
  t.teardown(() => {
    origin.faults.reply = undefined;
  });
  for (const [status, reason] of cases) {
    origin.faults.reply = (_call, _req, res) => {
      res.writeHead(status, status === 401 ? { 'www-authenticate': 'Basic realm="x"' } : {}).end(TOKEN);
      return true;
    };
    const error = await mirrors.snapshot(remote('shop'), path.join(place, String(status)), signal).catch((e) => e);
    t.ok(error instanceof ProviderError);
    t.match(error, { reason });
    t.notOk(JSON.stringify(error).includes(TOKEN) || String(error).includes(TOKEN));
  }
});

t.test('without the program there is one error that says what to install', async (t) => {
  const path = process.env['PATH'];
  process.env['PATH'] = '/nonexistent';
  t.teardown(() => {
    process.env['PATH'] = path;
  });
  await t.rejects(gitText({ folder: '/', args: ['version'], signal }), GitMissingError);
});
