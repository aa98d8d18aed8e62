import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir, readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import t from 'tap';
import { gitText } from '../../../../engine/git/program.ts';
import { openFolder } from '../../../support/folders.ts';
import { until } from '../../../support/wait.ts';

const SECRET = 'planted-credential-of-a-push';

/** The command lines of every process that names the address, by process. */
async function processesOf(address: string): Promise<string[]> {
  const found: string[] = [];
  for (const pid of await readdir('/proc')) {
    if (!/^\d+$/.test(pid)) continue;
    const line = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
    if (line.includes(address) && !line.includes('--eval')) found.push(line);
  }
  return found;
}

t.test('no push outlives a process that was killed, and none shows its credential', async (t) => {
  const folder = await openFolder(t);
  const signal = new AbortController().signal;
  await gitText({ folder, args: ['init', '-q', '--bare', '.'], signal });
  const authorized: (string | undefined)[] = [];
  // Takes the push, and never answers.
  const server = createServer((request) => authorized.push(request.headers.authorization));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}/acme/site`;
  const module = path.resolve(import.meta.dirname, '../../../../engine/git/program.ts');
  const pusher = spawn(
    process.execPath,
    [
      '--input-type=module',
      '--eval',
      `import { runGit } from ${JSON.stringify(module)};
       await runGit({ folder: ${JSON.stringify(folder)}, args: ['push', '${address}', ':refs/heads/main'],
         secrets: new Map([['http.extraHeader', 'Authorization: ${SECRET}']]), signal: new AbortController().signal });`,
    ],
    { stdio: ['ignore', 'inherit', 'inherit'] },
  );
  t.teardown(() => pusher.kill('SIGKILL'));
  await until('the server holds the push', () => authorized.length > 0);
  t.equal(authorized[0], SECRET);
  const lines = await processesOf(address);
  t.ok(lines.length >= 2, 'git and its child run');
  t.notOk(lines.some((line) => line.includes(SECRET)));
  for (const file of await readdir(folder, { recursive: true, withFileTypes: true })) {
    if (!file.isFile()) continue;
    t.notOk((await readFile(path.join(file.parentPath, file.name), 'latin1')).includes(SECRET), file.name);
  }
  pusher.kill('SIGKILL');
  await until('the leash ended it', async () => (await processesOf(address)).length === 0);
});
