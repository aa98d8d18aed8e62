// The rest is in test/slow/api/git.
import t from 'tap';
import type { Action } from '../../../api/actions/schema.ts';
import { FLUSH, pktLine } from '../../../engine/git/pkt_line.ts';
import { expectSuccess, ownerPath } from '../../support/api_fixtures.ts';
import { git, gitDone } from '../../support/git_origin.ts';
import { cloneOf, commitFile, createCoder, seedRepository, startGit } from './support.ts';

const world = await startGit(t);
const bare = await seedRepository(t, world.origin);

t.test('an execution clones; its push waits for an approval, and moves no branch before', async (t) => {
  const coder = await createCoder(world);
  const folder = await cloneOf(t, coder);
  const before = await gitDone(bare, 'rev-parse', 'main');
  t.equal(await gitDone(folder, 'rev-parse', 'HEAD'), before);
  const made = await commitFile(folder, 'a.txt', 'a');
  const pushed = await git(folder, 'push', 'origin', 'HEAD:main');
  t.equal(pushed.code, 1);
  const actions = expectSuccess(await world.app.owner.get<Action[]>(ownerPath(coder.org, '/actions')));
  t.match(actions, [
    { kind: 'git_push', status: 'awaiting_approval', arguments: { refs: [{ oldOid: before, newOid: made }] } },
  ]);
  t.match(pushed.stderr, `(awaiting approval, as action ${actions[0]?.id})`);
  const { rows } = await world.sql.owner.query('select timeout_ms from app.actions where id = $1', [actions[0]?.id]);
  t.same(rows, [{ timeout_ms: 600_000 }], 'it is sent within ten minutes');
  t.equal(await gitDone(folder, 'rev-parse', 'origin/main'), before);
  t.equal(await gitDone(bare, 'rev-parse', 'main'), before);
  t.match((await git(folder, 'push', '--delete', 'origin', 'main')).stderr, /the gateway deletes no refs/);
  t.match((await git(folder, 'fetch', coder.url('acme/other'))).stderr, /not found/);
});

t.test('without git on the machine a push is refused, and the log says what to install', async (t) => {
  const coder = await createCoder(world);
  const update = pktLine(`${'0'.repeat(40)} ${'1'.repeat(40)} refs/heads/x\0report-status`);
  const search = process.env['PATH'];
  t.teardown(() => {
    process.env['PATH'] = search;
  });
  process.env['PATH'] = '/nonexistent';
  const { origin, pathname } = new URL(coder.url());
  const response = await fetch(`${origin}${pathname}/git-receive-pack`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${coder.capability}`,
      'content-type': 'application/x-git-receive-pack-request',
    },
    body: Buffer.concat([update, FLUSH, Buffer.from('PACK')]),
  });
  t.match(await response.text(), /ng refs\/heads\/x The service cannot use git at the moment/);
  t.match(JSON.stringify(world.app.logged), /There is no program git on this machine: install git/);
});
