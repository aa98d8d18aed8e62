import { randomUUID } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { ChatEventsError } from '../chat_events.ts';
import { printError, printLine, printText, printTimed } from '../terminal.ts';
import { workerApi } from '../worker/api.ts';
import { OptionsError, ownerToken, readOptions } from '../worker/options.ts';
import { pullLoop } from '../worker/pull_loop.ts';
import { CHAT_COMMAND, demoChat } from './chat.ts';
import { demoInitiative, INITIATIVE_COMMAND, watchInitiative } from './initiative.ts';
import { demoOnboarding } from './onboarding.ts';
import { demoOrganization } from './organization.ts';
import { type DemoTask, type OwnerApi, OwnerApiError, ownerApi } from './owner_api.ts';
import { DEMO_COMMAND, demoTasks } from './tasks.ts';
import { DemoError, watchTask } from './watch.ts';

const TIMEOUT_MS = 60_000;

const USAGE = `npm run demo [-- options]

Shows finished work within a minute, on a Business Runner that npm start runs in another terminal: a demo organization,
two tasks with a sales file, an initiative that an agent plans and that asks you a question, a chat whose answer streams,
and the workers for all of them; then a second organization, onboarded from a website and two files. Run it as often as you
like.

  --url URL           the API (http://127.0.0.1:3000)
  --token-file FILE   file with the service token (.data/agent-service-token, made by npm start)
  --help

Set BUSINESS_RUNNER_OWNER_TOKEN to an owner's bearer token where the API requires one (OWNER_AUTH).
`;

/** A file that an agent made, set off from the lines around it. */
function printFile(text: string): void {
  printText(`\n${text.trim().replace(/^/gm, '      ')}\n\n`);
}

function readArguments() {
  try {
    const options = { url: { type: 'string' }, 'token-file': { type: 'string' }, help: { type: 'boolean' } } as const;
    return parseArgs({ options }).values;
  } catch (error) {
    throw new OptionsError(error instanceof Error ? error.message : String(error));
  }
}

type Place = Readonly<{ url: string; tokenFile: string | undefined; organizationId: string; scratch: string }>;

type Print = (line: string) => void;

/** The reference worker, inside this process, for the demo organization alone. */
function demoWorker({ url, tokenFile, organizationId, scratch }: Place, print: Print, ...argv: string[]) {
  const options = readOptions([
    ...['--url', url, '--organization', organizationId, '--worker-id', 'demo-worker', '--scratch', scratch, ...argv],
    ...(tokenFile === undefined ? [] : ['--token-file', tokenFile]),
  ]);
  if (!options) throw new OptionsError('no options');
  const drain = new AbortController();
  const worker = { api: workerApi(options), options, print, drain: drain.signal, stop: drain.signal };
  return { work: () => pullLoop(worker), end: () => drain.abort() };
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
async function initiative(api: OwnerApi, place: Place, deadline: number): Promise<void> {
  printLine();
  const { url, organizationId } = place;
  const task = await api.createTask(organizationId, demoInitiative());
  printTimed(`${task.identifier}  created: ${task.title} (to be planned)`);
  const worker = demoWorker(place, printTimed, '--kind', 'task', '--concurrency', '2', '--exec', INITIATIVE_COMMAND);
  const working = worker.work();
  const stopped = working.then(() => new Promise<never>(() => {}));
  const over = new AbortController();
  try {
    const watching = watchInitiative(api, organizationId, task, { print: printTimed, deadline, signal: over.signal });
    const below = await Promise.race([watching, stopped]);
    const letter = below.find(({ result }) => result?.artifacts?.[0]?.path === 'letter.md');
    const run = `/organizations/${organizationId}/runs/${letter?.result?.completion?.runIds.at(-1)}`;
    printFile(await api.text(`${run}/artifacts/0/content`));
    printLine(`  the letter   ${url}${run}/artifacts/0/content`);
    printLine(`  its tasks    ${url}/organizations/${organizationId}/tasks?parentId=${task.id}`);
  } finally {
    over.abort();
    worker.end();
    await working.catch(() => {});
  }
}

/** Asks a question in a chat, and runs a worker that answers it. */
async function chat(api: OwnerApi, place: Place, deadline: number): Promise<void> {
  printLine();
  // Its output would mix with the answer.
  const worker = demoWorker(place, () => {}, '--kind', 'chat', '--exec', CHAT_COMMAND);
  const working = worker.work();
  const stopped = working.then(() => new Promise<never>(() => {}));
  try {
    const asking = demoChat(api, place.organizationId, { print: printTimed, write: printText, deadline });
    printLine(`  the chat     ${place.url}${await Promise.race([asking, stopped])}`);
  } finally {
    worker.end();
    await working.catch(() => {});
  }
}

async function demo(url: string, tokenFile: string | undefined): Promise<void> {
  const begun = performance.now();
  const api = ownerApi({ url, token: ownerToken() });
  await api.ready().catch((error: unknown) => {
    const why = error instanceof OwnerApiError ? 'is not ready yet' : 'does not answer';
    throw new DemoError(
      `Business Runner at ${url} ${why}. Run npm start in another terminal, then npm run demo again.`,
    );
  });
  const organizationId = await demoOrganization(api, printTimed);
  const scratch = path.join(tmpdir(), `business-runner-demo-${randomUUID()}`);
  const place = { url, tokenFile, organizationId, scratch };
  const worker = demoWorker(place, printTimed, '--kind', 'task', '--profile', 'growth', '--exec', DEMO_COMMAND);
  const created: DemoTask[] = [];
  for (const body of demoTasks()) {
    const task = await api.createTask(organizationId, body);
    printTimed(`${task.identifier}  created: ${task.title}`);
    created.push(task);
  }
  printTimed('a worker starts and pulls tasks');
  const over = new AbortController();
  const working = worker.work();
  // A worker that fails, for instance with a wrong token, ends the wait at once.
  const stopped = working.then(() => new Promise<never>(() => {}));
  try {
    const watched = { print: printTimed, deadline: begun + TIMEOUT_MS, signal: over.signal };
    const watching = created.map((task) => watchTask(api, organizationId, task, watched));
    const finished = await Promise.race([Promise.all(watching), stopped]);
    worker.end();
    await working;
    await show(api, url, organizationId, finished);
    await initiative(api, place, performance.now() + TIMEOUT_MS);
    await chat(api, place, performance.now() + TIMEOUT_MS);
    printLine();
    const paths = await demoOnboarding(api, { print: printTimed, deadline: performance.now() + TIMEOUT_MS });
    for (const [index, path] of paths.entries()) {
      printLine(`  ${(index === 0 ? 'onboarded' : 'it knows').padEnd(12)} ${url}${path}`);
    }
    printLine(`  the API      ${url}/docs`);
    printText(`\nDone in ${((performance.now() - begun) / 1000).toFixed(1)} s.\n`);
  } finally {
    over.abort();
    worker.end();
    await working.catch(() => {});
    await rm(scratch, { recursive: true, force: true });
  }
}

try {
  const values = readArguments();
  if (values.help) printText(USAGE);
  else await demo((values.url ?? 'http://127.0.0.1:3000').replace(/(?<!\/)\/+$/, ''), values['token-file']);
} catch (error) {
  const known =
    error instanceof DemoError ||
    error instanceof OptionsError ||
    error instanceof OwnerApiError ||
    error instanceof ChatEventsError;
  if (!known && !(error instanceof Error && error.name === 'ApiError')) throw error;
  const unauthorized = (error as { status?: number }).status === 401;
  const setting = error instanceof OwnerApiError ? 'set BUSINESS_RUNNER_OWNER_TOKEN' : 'give --token-file';
  const hint = unauthorized ? ` (${setting})` : '';
  printError(`demo: ${(error as Error).message}${hint}`);
  process.exitCode = 1;
}
