import { randomUUID } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { CHAT_COMMAND, sendQuestion } from '../demo/chat.ts';
import { requireReady, runDemoCommand } from '../demo/command.ts';
import { type DemoTask, type OwnerApi, ownerApi } from '../demo/owner_api.ts';
import { DEMO_COMMAND, nodeCommand } from '../demo/tasks.ts';
import { DemoError } from '../demo/watch.ts';
import { serviceToken, startWorker, type Target } from '../demo/worker.ts';
import { loadEnvironmentFile } from '../environment_file.ts';
import { printText, printTimed } from '../terminal.ts';
import { localUrl } from '../worker/local_url.ts';
import { OptionsError, ownerToken } from '../worker/options.ts';
import { DEPARTMENTS, ORGANIZATION, SEED_CHATS, SEED_SCHEDULE, seedTasks } from './content.ts';

const TIMEOUT_MS = 120_000;
const POLL_INTERVAL_MS = 250;
const AGENT_COMMAND = nodeCommand(path.resolve(import.meta.dirname, 'agent.mjs'));

const USAGE = `npm run seed [-- options]

Makes one more organization with plausible data on a Business Runner that npm start or npm run dev runs in another terminal:
tasks that are completed, failed, scheduled, pending or wait for a person, their runs, logs and files, chats with replies,
and a schedule. It takes half a minute; each call makes an organization of its own.

  --url URL           the API (http://127.0.0.1:3000, or HOST and PORT as npm start reads them)
  --token-file FILE   file with the service token (.data/agent-service-token, made by npm start)
  --no-env-file       does not read the settings in .env
  --help

Set BUSINESS_RUNNER_OWNER_TOKEN to an owner's bearer token where the API requires one (OWNER_AUTH).
`;

function readArguments() {
  try {
    const options = { url: { type: 'string' }, 'token-file': { type: 'string' }, help: { type: 'boolean' } } as const;
    return parseArgs({ args: loadEnvironmentFile(process.argv.slice(2)), options }).values;
  } catch (error) {
    throw new OptionsError(error instanceof Error ? error.message : String(error));
  }
}

/** When waiting ends: at `deadline` (`performance.now()`), and where `signal` is aborted because something else failed. */
type Limits = Readonly<{ deadline: number; signal: AbortSignal }>;

/** @throws DemoError when it has not reached the status by the deadline */
async function waitForTask(api: OwnerApi, id: string, task: DemoTask, status: string, limits: Limits): Promise<void> {
  const { deadline, signal } = limits;
  for (;;) {
    const now = await api.getTask(id, task.id);
    if (now.status === status) {
      printTimed(`${now.identifier}  ${now.title}: ${now.status}`);
      return;
    }
    if (performance.now() > deadline) throw new DemoError(`${now.identifier} is ${now.status} instead of ${status}.`);
    await sleep(POLL_INTERVAL_MS, undefined, { signal });
  }
}

async function seedWork(api: OwnerApi, target: Target): Promise<void> {
  const { organizationId } = target;
  const over = new AbortController();
  const limits = { deadline: performance.now() + TIMEOUT_MS, signal: over.signal };
  const expected = [];
  for (const { body, status } of seedTasks(Date.now())) {
    expected.push({ task: await api.createTask(organizationId, body), status });
  }
  const quiet = () => {};
  const workers = [
    startWorker(target, quiet, '--kind', 'task', '--profile', 'growth', '--exec', DEMO_COMMAND),
    startWorker(target, quiet, '--kind', 'task', '--profile', 'support', '--exec', AGENT_COMMAND),
    startWorker(target, quiet, '--kind', 'chat', '--exec', CHAT_COMMAND),
  ];
  try {
    const tasks = expected.map(({ task, status }) => waitForTask(api, organizationId, task, status, limits));
    const chats = SEED_CHATS.map(({ title, question }) => seedChat(api, organizationId, title, question, limits));
    await Promise.race([Promise.all([...tasks, ...chats]), ...workers.map((worker) => worker.failed)]);
  } finally {
    over.abort();
    await Promise.all(workers.map((worker) => worker.end()));
  }
}

async function seedChat(api: OwnerApi, id: string, title: string, question: string, limits: Limits): Promise<void> {
  const { deadline, signal } = limits;
  const { chatId, messageId } = await sendQuestion(api, id, title, question);
  for (;;) {
    const message = (await api.listMessages(id, chatId)).find((one) => one.id === messageId);
    if (message?.status === 'complete') {
      printTimed(`chat  ${title}: replied`);
      return;
    }
    if (performance.now() > deadline) throw new DemoError(`the reply in “${title}” is ${message?.status}.`);
    await sleep(POLL_INTERVAL_MS, undefined, { signal });
  }
}

async function seed(url: string, tokenFile: string | undefined): Promise<void> {
  const api = ownerApi({ url, token: ownerToken() });
  await requireReady(api, url, 'npm run seed');
  const id = randomUUID();
  const organization = await api.createOrganization(id, {
    ...ORGANIZATION,
    slug: `${ORGANIZATION.slug}-${id.slice(0, 8)}`,
  });
  printTimed(`created the organization ${ORGANIZATION.name}`);
  await api.provision(id, DEPARTMENTS);
  const scratch = path.join(tmpdir(), `business-runner-seed-${id}`);
  const target = { url, tokenFile, organizationId: organization.id, scratch };
  try {
    await seedWork(api, target);
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
  await api.createSchedule(id, serviceToken(tokenFile), SEED_SCHEDULE);
  printTimed(`schedule  ${SEED_SCHEDULE.title}: ${SEED_SCHEDULE.cron}`);
  printText(`\n  tasks   ${url}/organizations/${id}/tasks\n  chats   ${url}/organizations/${id}/chats\n`);
  printText(`  inbox   ${url}/organizations/${id}/human-inbox\n`);
}

await runDemoCommand('seed', async () => {
  const values = readArguments();
  if (values.help) printText(USAGE);
  else await seed((values.url ?? localUrl(process.env)).replace(/(?<!\/)\/+$/, ''), values['token-file']);
});
