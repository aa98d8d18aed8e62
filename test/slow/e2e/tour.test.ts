import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { mkdir, readdir, symlink } from 'node:fs/promises';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import t, { type Test } from 'tap';
import type { Task } from '../../../api/tasks/schema.ts';
import { bareEnvironment } from '../../support/environment.ts';
import { openFolder } from '../../support/folders.ts';
import { createClient } from '../../support/http.ts';
import { identities, treeOf } from '../../support/processes.ts';
import { start } from '../../support/start.ts';

// A dozen npm commands, one after the other, and a machine that is busy takes its time.
t.setTimeout(600_000);
const root = path.resolve(import.meta.dirname, '../../..');
const NEXT = '\n--- the next block ---\n';
/** What a shell prints, where JSON is the one thing on a line. */
const LAMPS = '{"lamps": 42}\n';

/** The blocks of shell in the tour of README.md, in their order. */
function tour(): string[] {
  const readme = readFileSync(path.join(root, 'README.md'), 'utf8');
  const [, chapter = ''] = /^## A tour of sixty seconds\n(.*?)^## /ms.exec(readme) ?? [];
  return [...chapter.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, block = '']) => block);
}

/** A folder as a clone has it, to which commands may add files. A person's settings in .env are not in it. */
async function cloneOf(test: Test): Promise<string> {
  const clone = path.join(await openFolder(test), 'clone');
  await mkdir(clone);
  const names = (await readdir(root)).filter((name) => !name.startsWith('.'));
  for (const name of names) await symlink(path.join(root, name), path.join(clone, name));
  return clone;
}

async function setUp(test: Test) {
  const clone = await cloneOf(test);
  const folder = path.dirname(clone);
  const DATA_DIR = path.join(folder, '.data');
  const started = start({ DATA_DIR, PORT: '0' });
  test.teardown(async () => {
    started.child.kill('SIGTERM');
    await started.ended;
  });
  const url = await started.ready();
  const { port } = new URL(url);
  const env = bareEnvironment({ DATA_DIR, PORT: port, HOME: folder, npm_config_offline: 'true' });
  const open = (script: string) =>
    spawn('sh', ['-c', `set -e\n${script}`], { cwd: clone, env, stdio: ['ignore', 'pipe', 'pipe'] });
  const sh = async (script: string): Promise<string> => {
    const child = open(script);
    const [out, err, [status]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
    if (status !== 0) throw new Error(`status ${status}\n${out}${err}`);
    return out;
  };
  return { url, open, sh, screen: started.stdout(), owner: createClient(url) };
}

const withoutCurl = spawnSync('curl', ['--version']).status === 0 ? false : 'the machine has no curl';

t.test(
  'the tour of README.md and the curl of the start screen do what they say',
  { skip: withoutCurl },
  async (test) => {
    const { url, open, sh, screen, owner } = await setUp(test);
    const blocks = tour().map((block) => block.replaceAll('http://127.0.0.1:3000', url));
    const last = blocks.pop() ?? '';
    test.equal(blocks.length, 6);
    const separate = `printf '%s' '${NEXT}'\n`;
    const printed = (await sh(blocks.join(separate))).split(NEXT);
    const [created, worked, shown, byHttp, file] = printed;
    test.match(created, /T-1/);
    test.match(worked, / T-1 +succeeded /);
    for (const part of [/^ +status +completed$/m, /^ +check +passed: report\.json/m, /^ +file +report\.json /m]) {
      test.match(shown, part);
    }
    test.match(shown, LAMPS);
    test.match(byHttp, /\{\s*"status": "completed",.*"path": "report\.json"/s);
    test.equal(file, LAMPS);

    // The organization of the second half, whose agent asked and read the response.
    const { data: organizations } = await owner.get<{ id: string; slug: string }[]>('/organizations');
    const idOf = (slug: string) => organizations.find((one) => one.slug === slug)?.id;
    const letter = await owner.get<Task>(`/organizations/${idOf('lamp-studio-2')}/tasks/T-2`);
    test.match(letter.data, {
      title: 'Write a letter',
      status: 'completed',
      state: { answers: [{ response: 'the customers' }] },
    });
    const [artifact] = letter.data.result?.artifacts ?? [];
    const content = await owner.fetch(
      `/organizations/${idOf('lamp-studio-2')}/runs/${artifact?.runId}/artifacts/0/content`,
    );
    test.equal(await content.text(), '# Write a letter\n\nFor the customers.\n');

    // An agent of one's own, which goes on until it is stopped.
    const worker = open(last);
    const processes = async () => identities(await treeOf(worker.pid ?? 0));
    test.teardown(async () => {
      for (const { pid } of (await processes()).toReversed()) process.kill(pid, 'SIGKILL');
    });
    const waited = await sh('npx business-runner task create "A letter for Ann" --org lamp-studio --wait');
    test.match(waited, 'For Ann.');

    const command = /^ {2}(curl (?:.*\\\n)*.*)$/m.exec(screen)?.[1] ?? '';
    test.match(command, ` ${url}/organizations/`);
    const { statusCode, data } = JSON.parse(await sh(command.replace('curl ', 'curl -sS ')));
    test.match({ statusCode, data }, { statusCode: 201, data: { slug: 'acme-2' } }, command);
    const task = await owner.post(`/organizations/${data.id}/tasks`, { title: 'hello' });
    test.match(task, { status: 201, data: { identifier: 'T-1' } }, 'a title alone makes a task of it');
  },
);
