import t from 'tap';
import { git, gitDone } from '../../support/git_origin.ts';
import { cloneOf, commitFile, createCoder, seedRepository, startGit } from './support.ts';

const world = await startGit(t);
const bare = await seedRepository(t, world.origin);

t.test('an execution clones and fetches with the real git', async (t) => {
  const coder = await createCoder(world);
  const folder = await cloneOf(t, coder);
  t.equal(await gitDone(folder, 'rev-parse', 'HEAD'), await gitDone(bare, 'rev-parse', 'main'));
});

t.test('a push waits', async (t) => {
  const coder = await createCoder(world);
  const folder = await cloneOf(t, coder);
  const before = await gitDone(folder, 'rev-parse', 'origin/main');
  await commitFile(folder, 'a.txt', 'a');
  const pushed = await git(folder, 'push', 'origin', 'HEAD:main');
  t.comment(pushed.stderr);
  t.equal(pushed.code, 1);
  t.equal(await gitDone(folder, 'rev-parse', 'origin/main'), before);
  t.comment(
    JSON.stringify(
      world.app.logged.filter((l) => Number(l['level']) >= 40),
      null,
      1,
    ),
  );
});
