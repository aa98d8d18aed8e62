// The rest is in test/slow/api/git.
import t from 'tap';
import type { Action } from '../../../api/actions/schema.ts';
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
  t.equal(await gitDone(folder, 'rev-parse', 'origin/main'), before);
  t.equal(await gitDone(bare, 'rev-parse', 'main'), before);
  t.match((await git(folder, 'push', '--delete', 'origin', 'main')).stderr, /the gateway deletes no refs/);
  t.match((await git(folder, 'fetch', coder.url('acme/other'))).stderr, /not found/);
});
