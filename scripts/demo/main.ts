import { randomUUID } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { loadEnvironmentFile } from '../environment_file.ts';
import { localOwnerToken } from '../owner_token.ts';
import { printLine, printText, printTimed } from '../terminal.ts';
import { localUrl } from '../worker/local_url.ts';
import { OptionsError, ownerToken } from '../worker/options.ts';
import { CHAT_COMMAND, demoChat } from './chat.ts';
import { requireReady, runDemoCommand } from './command.ts';
import { demoInitiative, INITIATIVE_COMMAND, watchInitiative } from './initiative.ts';
import { demoOnboarding } from './onboarding.ts';
import { demoOrganization } from './organization.ts';
import { type DemoTask, type OwnerApi, ownerApi } from './owner_api.ts';
import { DEMO_COMMAND, demoTasks } from './tasks.ts';
import { watchTask } from './watch.ts';
import { startWorker, type Target } from './worker.ts';

const TIMEOUT_MS = 60_000;

const USAGE = `npm run demo [-- options]
       npm run demo -- integrations [options]
       npm run demo -- actions [options]

Shows finished work within a minute, on a Business Runner that npm start runs in another terminal: a demo organization,
two tasks with a sales file, an initiative that an agent plans and that asks you a question, a chat whose reply streams,
and the workers for all of them; then a second organization, onboarded from a website and two files. Run it as often as you
like.

integrations: an integration with an MCP server of the demo's own, without any account: connected, its tools chosen, and what
an owner and an agent see of it. Needs ALLOW_PRIVATE_ADDRESSES=1 npm start, since the server is on this machine.

actions: an agent that reads from such a server and proposes a change there; you approve it, here by Enter or in another terminal;
then it is done, and its signed receipt is checked. Needs the same.

  --url URL           the API (http://127.0.0.1:3000, or HOST and PORT as npm start reads them)
  --token-file FILE   file with the service token (.data/agent-service-token, made by npm start)
  --no-env-file       does not read the settings in .env
  --help

Set BUSINESS_RUNNER_OWNER_TOKEN to an owner's bearer token where the API requires one (OWNER_AUTH). Without it, and without
--url, both find the one that npm start keeps.
`;

const ABOUT = ['integrations', 'actions'];

function readArguments() {
  try {
    const options = { url: { type: 'string' }, 'token-file': { type: 'string' }, help: { type: 'boolean' } } as const;
    const args = loadEnvironmentFile(process.argv.slice(2));
    const { values, positionals } = parseArgs({ args, options, allowPositionals: true });
    const [about, more] = positionals;
    const unknown = about === undefined || ABOUT.includes(about) ? more : about;
    if (unknown !== undefined) {
      throw new Error(`${JSON.stringify(unknown)}: the demo takes nothing, or one of ${ABOUT.join(', ')}`);
    }
    return { ...values, about };
  } catch (error) {
    throw new OptionsError(error instanceof Error ? error.message : String(error));
  }
}

/** A file that an agent made, set off from the lines around it. */
function printFile(text: string): void {
  printText(`\n${text.trim().replace(/^/gm, '      ')}\n\n`);
}

async function show(api: OwnerApi, url: string, organizationId: string, tasks: readonly DemoTask[]): Promise<void> {
  for (const task of tasks) {
    const run = `/organizations/${organizationId}/runs/${task.result?.completion?.runIds.at(-1)}`;
    printLine();
    printLine(`${task.identifier}  ${task.title}: ${task.result?.summary}`);
    printLine(`  the run      ${url}${run}`);
    printLine(`  its log      ${url}${run}/logs`);
    for (const [index, { path }] of (task.result?.artifacts ?? []).entries()) {
      printLine(`  ${path.padEnd(12)} ${url}${run}/artifacts/${index}/content`);
      if (task === tasks.at(-1) && path.endsWith('.md')) {
        printFile(await api.text(`${run}/artifacts/${index}/content`));
      }
    }
  }
  printLine(`  all tasks    ${url}/organizations/${organizationId}/tasks`);
}

/** Creates an initiative, and runs a worker that plans it and does the tasks of the plan. */
async function initiative(api: OwnerApi, target: Target, deadline: number): Promise<void> {
  printLine();
  const { url, organizationId } = target;
  const task = await api.createTask(organizationId, demoInitiative());
  printTimed(`${task.identifier}  created: ${task.title} (to be planned)`);
  const worker = startWorker(target, printTimed, '--kind', 'task', '--concurrency', '2', '--exec', INITIATIVE_COMMAND);
  const over = new AbortController();
  try {
    const watching = watchInitiative(api, organizationId, task, { print: printTimed, deadline, signal: over.signal });
    const below = await Promise.race([watching, worker.failed]);
    const letter = below.find(({ result }) => result?.artifacts?.[0]?.path === 'letter.md');
    const run = `/organizations/${organizationId}/runs/${letter?.result?.completion?.runIds.at(-1)}`;
    printFile(await api.text(`${run}/artifacts/0/content`));
    printLine(`  the letter   ${url}${run}/artifacts/0/content`);
    printLine(`  its tasks    ${url}/organizations/${organizationId}/tasks?parentId=${task.id}`);
  } finally {
    over.abort();
    await worker.end();
  }
}

/** Asks a question in a chat, and runs a worker that replies to it. */
async function chat(api: OwnerApi, target: Target, deadline: number): Promise<void> {
  printLine();
  // Its output would mix with the reply.
  const worker = startWorker(target, () => {}, '--kind', 'chat', '--exec', CHAT_COMMAND);
  const over = new AbortController();
  try {
    const options = { print: printTimed, write: printText, deadline, signal: over.signal };
    const asking = demoChat(api, target.organizationId, options);
    printLine(`  the chat     ${target.url}${await Promise.race([asking, worker.failed])}`);
  } finally {
    over.abort();
    await worker.end();
  }
}

async function demo(url: string, tokenFile: string | undefined): Promise<void> {
  const begun = performance.now();
  const api = ownerApi({ url, token: ownerToken() });
  await requireReady(api, url, 'npm run demo');
  const organizationId = await demoOrganization(api, printTimed);
  const scratch = path.join(tmpdir(), `business-runner-demo-${randomUUID()}`);
  const target = { url, tokenFile, organizationId, scratch };
  const created: DemoTask[] = [];
  for (const body of demoTasks()) {
    const task = await api.createTask(organizationId, body);
    printTimed(`${task.identifier}  created: ${task.title}`);
    created.push(task);
  }
  printTimed('a worker starts and pulls tasks');
  const over = new AbortController();
  const worker = startWorker(target, printTimed, '--kind', 'task', '--profile', 'growth', '--exec', DEMO_COMMAND);
  try {
    const watched = { print: printTimed, deadline: begun + TIMEOUT_MS, signal: over.signal };
    const watching = created.map((task) => watchTask(api, organizationId, task, watched));
    const finished = await Promise.race([Promise.all(watching), worker.failed]);
    await worker.end();
    await show(api, url, organizationId, finished);
    await initiative(api, target, performance.now() + TIMEOUT_MS);
    await chat(api, target, performance.now() + TIMEOUT_MS);
    printLine();
    const paths = await demoOnboarding(api, { print: printTimed, deadline: performance.now() + TIMEOUT_MS });
    for (const [index, path] of paths.entries()) {
      printLine(`  ${(index === 0 ? 'onboarded' : 'it knows').padEnd(12)} ${url}${path}`);
    }
    printLine(`  the API      ${url}/docs`);
    printText(`\nDone in ${((performance.now() - begun) / 1000).toFixed(1)} s.\n`);
  } finally {
    over.abort();
    await worker.end();
    await rm(scratch, { recursive: true, force: true });
  }
}

await runDemoCommand('demo', async () => {
  const values = readArguments();
  const url = (values.url ?? localUrl(process.env)).replace(/(?<!\/)\/+$/, '');
  const tokenFile = values['token-file'];
  if (values.help) return printText(USAGE);
  if (values.about === undefined) return demo(url, tokenFile);
  // The token of the service on this machine is for no other address.
  const token = ownerToken() ?? (values.url === undefined ? localOwnerToken(process.env) : undefined);
  // Its server loads what no other part of the demo needs.
  const isNamed = values.url !== undefined;
  if (values.about === 'actions') await (await import('./actions.ts')).demoActions({ url, token, tokenFile, isNamed });
  else await (await import('./integrations.ts')).demoIntegrations({ url, token, tokenFile });
});
