import { fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import t from 'tap';
import { identify } from '../../../engine/process/identity.ts';
import { acquireLock } from '../../../engine/process/lock.ts';

t.test('a lock names its holder until it is released', async (test) => {
  const file = path.join(test.testdir(), 'lock');
  const release = acquireLock(file);
  test.throws(() => acquireLock(file), { name: 'LockedError', pid: process.pid });
  release();
  test.notOk(existsSync(file));
  acquireLock(file)();
});

t.test('the lock of a process that ended is taken over', async (test) => {
  const folder = test.testdir();
  const file = path.join(folder, 'lock');
  const child = spawn('sleep', ['60']);
  writeFileSync(file, JSON.stringify(identify(child.pid ?? 0)));
  test.throws(() => acquireLock(file), { name: 'LockedError', pid: child.pid });
  child.kill('SIGKILL');
  await once(child, 'exit');
  const release = acquireLock(file);
  test.same(readdirSync(folder), ['lock'], 'nothing else is left behind');
  release();
});

t.test('a process number in use again does not hold the lock', async (test) => {
  const file = path.join(test.testdir(), 'lock');
  writeFileSync(file, JSON.stringify({ pid: process.pid, startedAt: 'long ago' }));
  acquireLock(file)();
});

t.test('a damaged lock is taken over', async (test) => {
  const file = path.join(test.testdir(), 'lock');
  writeFileSync(file, '{"pid": 1');
  acquireLock(file)();
});

t.test('of many that find a stale lock at once one gets it', async (test) => {
  const folder = test.testdir({
    'take.ts': `
      import { acquireLock } from '${path.resolve(import.meta.dirname, '../../../engine/process/lock.ts')}';
      process.send('here');
      // "on": who no longer listens to its parent ends, and with it would end the lock that it took.
      process.on('message', (file) => {
        try { acquireLock(file); process.send('taken'); } catch (error) { process.send(error.name); }
      });`,
  });
  const children = await Promise.all(
    Array.from({ length: 5 }, async () => {
      const child = fork(path.join(folder, 'take.ts'));
      await once(child, 'message');
      return child;
    }),
  );
  const file = path.join(folder, 'lock');
  writeFileSync(file, JSON.stringify({ pid: process.pid, startedAt: 'long ago' }));
  const results = await Promise.all(
    children.map(async (child) => {
      child.send(file);
      const [result] = await once(child, 'message');
      return result;
    }),
  );
  test.same(results.sort(), ['LockedError', 'LockedError', 'LockedError', 'LockedError', 'taken']);
  for (const child of children) child.kill();
});
