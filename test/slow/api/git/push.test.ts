import { randomBytes } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { request } from 'node:http';
import path from 'node:path';
import t, { type Test } from 'tap';
import type { Action } from '../../../../api/actions/schema.ts';
import { FLUSH, pktLine } from '../../../../engine/git/pkt_line.ts';
import {
  type Coder,
  cloneOf,
  commitFile,
  createCoder,
  leftovers,
  moveMain,
  resolveGit,
  seedRepository,
  staged,
  startGit,
} from '../../../api/git/support.ts';
import { expectSuccess, ownerPath, storedKeys } from '../../../support/api_fixtures.ts';
import { updateOrganization } from '../../../support/fixtures.ts';
import { openFolder } from '../../../support/folders.ts';
import { git, gitDone } from '../../../support/git_origin.ts';
import { brokenInvariants } from '../../../support/invariants.ts';
import { until } from '../../../support/wait.ts';
import { EMPTY, lastPack, NONE, rawPush } from './raw_push.ts';

const world = await startGit(t);
const { app, origin, sql } = world;
const bare = await seedRepository(t, origin);

const actionsOf = async ({ org }: Coder) => expectSuccess(await app.owner.get<Action[]>(ownerPath(org, '/actions')));

const branchOf = (branch: string) => gitDone(bare, 'rev-parse', '--verify', '--quiet', branch);

t.afterEach(() => {
  origin.faults.reply = undefined;
});

/** Whatever becomes of its pushes, nothing that they needed stays on the disk of the API. */
function scenario(name: string, body: (test: Test) => Promise<void>): void {
  void t.test(name, async (test) => {
    await body(test);
    test.same(await leftovers(app.config.git.folder), []);
  });
}

scenario('a push becomes one action, and moves no branch before it is approved', async (t) => {
  const coder = await createCoder(world);
  const folder = await cloneOf(t, coder);
  const before = await gitDone(folder, 'rev-parse', 'origin/main');
  await commitFile(folder, 'a.txt', 'one\ntwo\n', 'Add a');
  const made = await commitFile(folder, 'b.bin', Buffer.from([0, 1, 2]), 'Add b\u001b[31m');
  const pushed = await git(folder, 'push', 'origin', 'HEAD:main');
  t.equal(pushed.code, 1);
  const [action, ...others] = await actionsOf(coder);
  if (!action) throw new Error('there is no action');
  t.same(others, []);
  t.match(
    pushed.stderr,
    new RegExp(`! \\[remote rejected\\] HEAD -> main \\(awaiting approval, as action ${action.id}\\)`),
  );
  t.match(pushed.stderr, /remote: Push 2 commits to acme\/shop: default branch main/);
  t.equal(await gitDone(folder, 'rev-parse', 'origin/main'), before);
  t.equal(await branchOf('main'), before);
  t.match(action, {
    kind: 'git_push',
    tool: 'git.push',
    risk: 'high',
    status: 'awaiting_approval',
    requiresApproval: true,
    taskId: coder.run.taskId,
    integrationId: coder.integrationId,
    provider: 'github',
    arguments: {
      repository: 'acme/shop',
      refs: [{ ref: 'refs/heads/main', oldOid: before, newOid: made, isDefaultBranch: true }],
      commitCount: 2,
      commits: [{ oid: made, subject: 'Add b [31m', author: 'Ada' }, { subject: 'Add a' }],
      changes: { files: 2, additions: 2, deletions: 0 },
      files: [
        { path: 'a.txt', additions: 2, deletions: 0 },
        { path: 'b.bin', additions: null, deletions: null },
      ],
    },
    files: [{ name: 'push.pack', contentType: 'application/x-git-packed-objects' }],
  });
  t.equal((await storedKeys(app, coder.org)).length, 1);

  const again = await git(folder, 'push', 'origin', 'HEAD:main');
  t.match(again.stderr, `awaiting approval, as action ${action.id}`, 'the same push has the same action');
  await gitDone(folder, '-c', 'pack.window=0', '-c', 'pack.compression=0', 'repack', '-a', '-d', '-f', '-q');
  const packedOtherwise = await git(folder, '-c', 'pack.compression=0', 'push', 'origin', 'HEAD:main');
  t.match(packedOtherwise.stderr, action.id, 'however it was packed');
  const atOnce = await Promise.all(Array.from({ length: 5 }, () => git(folder, 'push', 'origin', 'HEAD:main')));
  t.ok(
    atOnce.every(({ stderr }) => stderr.includes(action.id)),
    'also at once',
  );
  t.equal((await actionsOf(coder)).length, 1);
  t.equal((await storedKeys(app, coder.org)).length, 1, 'and no pack is left');
  t.same(await brokenInvariants(sql), []);
});

scenario('a new branch is external, and two branches are one action', async (t) => {
  const coder = await createCoder(world);
  const folder = await cloneOf(t, coder);
  await commitFile(folder, 'c.txt', 'c');
  await gitDone(folder, 'branch', 'one');
  await commitFile(folder, 'd.txt', 'd');
  await gitDone(folder, 'branch', 'two');
  const pushed = await git(folder, 'push', '--atomic', 'origin', 'one', 'two');
  t.equal(pushed.code, 1);
  t.equal(pushed.stderr.match(/awaiting approval/g)?.length, 3);
  t.match(await actionsOf(coder), [
    {
      risk: 'external',
      summary: /new branch one, new branch two/,
      arguments: {
        refs: [
          { ref: 'refs/heads/one', oldOid: null, isDefaultBranch: false },
          { ref: 'refs/heads/two', oldOid: null },
        ],
      },
    },
  ]);
  const existing = await git(folder, 'push', 'origin', 'origin/main:refs/heads/again');
  t.match(existing.stderr, /awaiting approval/, 'a branch without a new commit, and so without an object');
  t.equal((await actionsOf(coder)).length, 2);
});

scenario('as many branches as a push takes are one action', async (t) => {
  const coder = await createCoder(world);
  const folder = await cloneOf(t, coder);
  const made = await commitFile(folder, 'k.txt', 'k');
  const branches = Array.from({ length: 20 }, (_, number) => `refs/heads/of20-${number}`);
  const pushed = await git(folder, 'push', 'origin', ...branches.map((branch) => `HEAD:${branch}`));
  const [action, ...others] = await actionsOf(coder);
  if (!action) throw new Error('there is no action');
  t.same(others, []);
  const { refs } = action.arguments as { refs: { ref: string; newOid: string }[] };
  t.same(
    refs.map(({ ref, newOid }) => `${newOid} ${ref}`).sort(),
    branches.map((branch) => `${made} ${branch}`).sort(),
  );
  t.equal(pushed.stderr.split(`(awaiting approval, as action ${action.id})`).length, 21, 'each of them is told');
});

scenario('a clone without its history pushes', async (t) => {
  const coder = await createCoder(world);
  const other = path.join(await openFolder(t), 'other');
  await gitDone(path.dirname(other), 'clone', '--quiet', bare, other);
  await commitFile(other, 'e.txt', 'e');
  await gitDone(other, 'push', '--quiet', 'origin', 'HEAD:refs/heads/deep');
  const folder = await cloneOf(t, coder, '--depth=1', '--branch=deep');
  t.equal(await gitDone(folder, 'rev-list', '--count', 'HEAD'), '1');
  await commitFile(folder, 'f.txt', 'f');
  const pushed = await git(folder, 'push', 'origin', 'HEAD:deep');
  t.match(pushed.stderr, /awaiting approval/);
  t.match(await actionsOf(coder), [{ arguments: { commitCount: 1, changes: { files: 1 } } }]);
});

scenario('what the gateway does not take is refused, with a reason that a person reads', async (t) => {
  const coder = await createCoder(world);
  const folder = await cloneOf(t, coder);
  const main = await gitDone(folder, 'rev-parse', 'origin/main');
  await commitFile(folder, 'g.txt', 'g');
  await gitDone(folder, 'tag', 'v1');
  await gitDone(folder, 'branch', 'fine');
  const refused = async (...args: string[]) => {
    const { code, stderr } = await git(folder, 'push', 'origin', ...args);
    t.not(code, 0);
    return stderr;
  };
  t.match(await refused('v1'), /remote rejected\] v1 -> v1 \(the gateway takes no tags/);
  t.match(await refused('HEAD:refs/notes/x'), /only refs below refs\/heads\//);
  const both = await refused('fine', 'v1');
  t.match(both, /fine -> fine \(not applied: the push is atomic/, 'one bad update sinks the other');
  t.match(await refused('--delete', 'main'), /the gateway deletes no refs/);
  t.match(await refused('--push-option=a=b', 'fine'), /does not support push options/);
  const many = Array.from({ length: 21 }, (_, number) => `HEAD:refs/heads/many${number}`);
  t.match(await refused(...many), /at most 20 updates a push/);
  await gitDone(folder, 'commit', '--quiet', '--amend', '--message', 'Rewritten', '--reset-author', '--allow-empty');
  await gitDone(folder, 'checkout', '--quiet', '--orphan', 'lonely');
  await gitDone(folder, 'commit', '--quiet', '--message', 'Alone');
  t.match(await refused('--force', 'lonely:main'), /non-fast-forward/);

  // Nor where a client asks for it all the same.
  t.match(
    (await rawPush(coder, [`${main} ${NONE} refs/heads/main`])).text,
    /ng refs\/heads\/main the gateway deletes no refs/,
  );
  const option = { capabilities: 'report-status push-options', tail: Buffer.concat([pktLine('a=b'), FLUSH]) };
  t.match(
    (await rawPush(coder, [`${NONE} ${main} refs/heads/x`], option)).text,
    /ng refs\/heads\/x the gateway takes no push options/,
  );
  for (const name of [
    'refs/heads/a..b',
    'refs/heads/.a',
    'refs/heads/a.lock',
    'refs/heads/',
    'refs/heads/a b',
    'refs/heads/a//b',
    'refs/heads/@{x',
    'HEAD',
  ]) {
    t.match((await rawPush(coder, [`${NONE} ${main} ${name}`])).text, /ng /, name);
  }
  const twice = `${NONE} ${main} refs/heads/x`;
  t.match((await rawPush(coder, [twice, twice])).text, /ng refs\/heads\/x is updated twice/);
  t.match(
    (await rawPush(coder, [`${'1'.repeat(40)} ${main} refs/heads/fine`])).text,
    /ng refs\/heads\/fine the branch is gone/,
  );
  t.match(
    (await rawPush(coder, [`${NONE} ${'2'.repeat(40)} refs/heads/fine`])).text,
    /unpack .*ng refs\/heads\/fine/s,
    'no pack',
  );
  const blob = await gitDone(bare, 'rev-parse', 'main:README.md');
  t.match((await rawPush(coder, [`${NONE} ${blob} refs/heads/fine`], { tail: EMPTY })).text, /is not a commit/);
  t.match(
    (await rawPush(coder, [`${NONE} ${'3'.repeat(40)} refs/heads/fine`], { tail: EMPTY })).text,
    /the commit is missing/,
  );
  t.match(
    (await rawPush(coder, [`${NONE} ${main} refs/heads/fine`], { tail: Buffer.from('PACK?') })).text,
    /the pack is refused/,
  );
  t.match(
    (await rawPush(coder, [`${NONE} ${main} refs/heads/main`])).text,
    /ok refs\/heads\/main/,
    'it is there already',
  );
  t.same(await actionsOf(coder), []);
  t.same(await storedKeys(app, coder.org), []);
  t.equal(await branchOf('main'), main);
});

scenario('a branch that moved at the provider is to be fetched first', async (t) => {
  const moving = await seedRepository(t, origin, 'acme/moving');
  const coder = await createCoder(world, { repositories: ['moving'] });
  const folder = path.join(await openFolder(t), 'clone');
  await gitDone(path.dirname(folder), 'clone', '--quiet', coder.url('acme/moving'), folder);
  const old = await gitDone(folder, 'rev-parse', 'HEAD');
  const mine = await commitFile(folder, 'mine.txt', 'mine');
  const other = path.join(await openFolder(t), 'other');
  await gitDone(path.dirname(other), 'clone', '--quiet', moving, other);
  const theirs = await commitFile(other, 'theirs.txt', 'theirs');
  await gitDone(other, 'push', '--quiet', 'origin', 'HEAD:main');
  const pushed = await git(folder, 'push', 'origin', 'HEAD:main');
  t.match(pushed.stderr, /fetch first/, 'by the client, which sees the refs of now');
  const place = { ...coder, url: () => coder.url('acme/moving') };
  const raced = await rawPush(place, [`${old} ${mine} refs/heads/main`, `${NONE} ${mine} refs/heads/beside`]);
  t.match(raced.text, `ng refs/heads/main fetch first: the branch is at ${theirs.slice(0, 12)}`);
  t.match(raced.text, 'ng refs/heads/beside not applied: the push is atomic');
  t.same(await actionsOf(coder), []);
});

scenario('a push without the right to gets the reason, and nothing of it is kept', async (t) => {
  const cases = [
    [{ policies: ['git.read'] }, /may read repositories and not push/],
    [{ accessMode: 'read_only' }, /the integration is read-only/],
  ] as const;
  for (const [fields, reason] of cases) {
    const coder = await createCoder(world, fields);
    const folder = await cloneOf(t, coder);
    await commitFile(folder, 'h.txt', 'h');
    const pushed = await git(folder, 'push', 'origin', 'HEAD:refs/heads/mine');
    t.match(pushed.stderr, reason);
    t.same(await actionsOf(coder), []);
    t.same(await storedKeys(app, coder.org), []);
  }
  const coder = await createCoder(world);
  const folder = await cloneOf(t, coder);
  await commitFile(folder, 'h.txt', 'h');
  await app.database.owner.query(`update app.run_requests set mode = 'plan' where run_id = $1`, [coder.run.runId]);
  t.match((await git(folder, 'push', 'origin', 'HEAD:refs/heads/mine')).stderr, /a run of mode plan pushes nothing/);
});

scenario('nothing is kept of a push that is one action too many', async (t) => {
  const coder = await createCoder(world);
  await updateOrganization(sql.api, coder.org, { config: { limits: { maxDailyActions: 0 } } });
  const { capability } = await resolveGit(world, coder.org, coder.integrationId, coder.run);
  const renewed: Coder = { ...coder, capability, url: () => coder.url().replace(coder.capability, capability) };
  const folder = await cloneOf(t, renewed);
  await commitFile(folder, 'daily.txt', 'daily');
  const pushed = await git(folder, 'push', 'origin', 'HEAD:refs/heads/daily');
  t.match(pushed.stderr, /at most 0 actions a day/);
  t.same(await storedKeys(app, coder.org), []);
});

scenario('organizations share nothing of a repository', async (t) => {
  const secret = await seedRepository(t, origin, 'acme/hidden');
  await moveMain(t, secret);
  const [one, other] = [await createCoder(world), await createCoder(world, { repositories: ['shop', 'hidden'] })];
  const folders = [await cloneOf(t, one), await cloneOf(t, other)] as const;
  const made: string[] = [];
  for (const [index, coder] of [one, other].entries()) {
    const folder = folders[index] ?? '';
    made.push(await commitFile(folder, 'same.txt', coder.org.organizationId));
    await git(folder, 'push', 'origin', 'HEAD:refs/heads/same');
  }
  const [[first], [second]] = [await actionsOf(one), await actionsOf(other)];
  t.ok(first && second && first.id !== second.id);
  const mirrors = path.join(app.config.git.folder, 'mirrors');
  for (const { org, integrationId } of [one, other]) {
    t.equal((await readdir(path.join(mirrors, org.organizationId, integrationId))).length, 1);
  }

  // What the other one's push waits with, and a repository of the same provider that it alone has, with a mirror.
  const clone = path.join(await openFolder(t), 'clone');
  await gitDone(path.dirname(clone), 'clone', '--quiet', other.url('acme/hidden'), clone);
  const [work] = folders;
  for (const [commit, from] of [
    [made[1] ?? '', folders[1]],
    [await gitDone(secret, 'rev-parse', 'main'), clone],
  ] as const) {
    await commitFile(from, 'mine.txt', 'mine');
    await git(from, 'push', 'origin', 'HEAD:refs/heads/mine');
    t.match((await git(work, 'fetch', 'origin', commit)).stderr, /not our ref/, 'it is not fetched');
    const named = await rawPush(one, [`${NONE} ${commit} refs/heads/taken`], { tail: EMPTY });
    t.match(named.text, /ng refs\/heads\/taken the commit is missing/, 'a branch cannot name it');
    const child = await gitDone(from, 'rev-parse', 'HEAD');
    const above = await rawPush(one, [`${NONE} ${child} refs/heads/taken`], { tail: await lastPack(from) });
    t.match(above.text, /unpack builds on commits that the provider does not have.*ng refs\/heads\/taken/s);
  }
  t.equal((await actionsOf(one)).length, 1);
});

scenario('a push that breaks off, or whose repository cannot be read, leaves nothing', async (t) => {
  const coder = await createCoder(world);
  const folder = await cloneOf(t, coder);
  const made = await commitFile(folder, 'j.txt', 'j');
  const { origin: at, pathname } = new URL(coder.url());
  const sent = request(`${at}${pathname}/git-receive-pack`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${coder.capability}`,
      'content-type': 'application/x-git-receive-pack-request',
    },
  });
  sent.on('error', () => {});
  sent.write(Buffer.concat([pktLine(`${NONE} ${made} refs/heads/half\0report-status`), FLUSH, Buffer.from('PACK')]));
  await until('it is received', async () => (await staged(app.config.git.folder)).length === 1);
  sent.destroy();
  await until('nothing is left', async () => (await staged(app.config.git.folder)).length === 0);

  origin.faults.reply = ({ url }, _req, res) => {
    if (url.includes('git-upload-pack')) res.writeHead(500).end();
    return url.includes('git-upload-pack');
  };
  t.match((await git(folder, 'push', 'origin', 'HEAD:refs/heads/half')).stderr, /cannot be reached with git/);
  t.same(await actionsOf(coder), []);
  t.same(await storedKeys(app, coder.org), []);
});

scenario('without a need of approval a push is approved, and says so', async (t) => {
  const coder = await createCoder(world);
  await updateOrganization(sql.api, coder.org, { constraints: { approvalRequiredForRisk: [] } });
  const { capability } = await resolveGit(world, coder.org, coder.integrationId, coder.run);
  const renewed: Coder = { ...coder, capability, url: () => coder.url().replace(coder.capability, capability) };
  const folder = await cloneOf(t, renewed);
  await commitFile(folder, 'i.txt', 'i');
  const pushed = await git(folder, 'push', 'origin', 'HEAD:refs/heads/free');
  t.match(pushed.stderr, /approved, and about to be pushed, as action/);
  t.match(await actionsOf(coder), [{ status: 'approved', requiresApproval: false }]);
});

scenario('what is too large is refused', async (t) => {
  const small = await startGit(t, {
    config: { git: { ...app.config.git, maxPushBytes: 2_000 } },
    database: app.database,
  });
  await seedRepository(t, small.origin);
  const coder = await createCoder(small);
  const folder = await cloneOf(t, coder);
  await commitFile(folder, 'noise', randomBytes(9_000));
  t.match((await git(folder, 'push', 'origin', 'HEAD:main')).stderr, /HTTP 413/);
  t.same(await actionsOf(coder), []);
  t.same(await storedKeys(small.app, coder.org), []);
});
