// The command as an agent starts it beside git: by its shim.
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import t from 'tap';
import { commitFile, createCoder, seedRepository, startGit } from '../../../api/git/support.ts';
import { openRun } from './set_up.ts';

t.setTimeout(240_000);
t.test('git clones, fetches and pushes without a token in an address, a file or its settings', async (t) => {
  const world = await startGit(t);
  const bare = await seedRepository(t, world.origin);
  const coder = await createCoder(world);
  const { executionToken: token } = coder.run;
  const { folder, run } = await openRun(t, {
    url: world.app.url,
    token,
    organizationId: coder.org.organizationId,
  });
  const key = coder.integrationId;
  const cloned = await run('business-runner', 'git', key, 'acme/shop', 'shop');
  t.match(cloned, { status: 0, out: '' }, cloned.err);
  const clone = path.join(folder, 'shop');
  t.equal(await readFile(path.join(clone, 'README.md'), 'utf8'), 'shop\n');
  const config = await readFile(path.join(clone, '.git/config'), 'utf8');
  t.match(config, `helper = !business-runner git-credential ${key}`);
  t.notMatch(config, /[0-9a-f]{64}/);
  t.notOk(config.includes(token));
  t.match(await run('git', '-C', clone, 'fetch'), { status: 0 });

  await run('git', '-C', clone, 'checkout', '--quiet', '-b', 'topic');
  await commitFile(clone, 'a.txt', 'a\n');
  const pushed = await run('git', '-C', clone, 'push', 'origin', 'topic');
  t.equal(pushed.status, 1);
  t.match(pushed.err, /\[remote rejected\] topic -> topic \(.*action/);
  t.match((await run('business-runner', 'actions')).out, /awaiting_approval/);
  t.notMatch((await run('git', '-C', bare, 'branch')).out, /topic/);

  const printed = await run('business-runner', 'git', key, 'acme/shop');
  t.match(printed.out, /^git clone --config credential\.http.* --config '.*' http:\S+\/acme\/shop\n$|^git clone /);
  t.notMatch(printed.out, /[0-9a-f]{64}/);
  const again = await run('sh', '-c', `${printed.out.trim()} second`);
  t.equal(again.status, 0, again.err);
  const third = await run('business-runner', 'git', key, 'acme/shop', 'third', '--json');
  t.match(JSON.parse(third.out), { url: /\/acme\/shop$/, settings: Array, folder: 'third' }, third.err);
  t.match(await run('business-runner', 'git', key, 'acme/none', 'none'), { status: 1, err: /not found|404/i });
  t.match(await run('business-runner', 'git', key, '../x'), { status: 64 });
  const other = await run(
    'sh',
    '-c',
    `printf 'protocol=https\\nhost=evil.example\\n' | business-runner git-credential ${key} get`,
  );
  t.match(other, { status: 0, out: '' });
});
