import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { serveSales } from '../../examples/mcp/server.ts';
import { createOutput } from '../command/output.ts';
import { receiptVerify } from '../command/receipts.ts';
import { printError, printLine, printText, printTimed } from '../terminal.ts';
import { type ActionApi, actionApi, type DemoAction } from './action_api.ts';
import { requireReady } from './command.ts';
import { type IntegrationApi, integrationApi } from './integration_api.ts';
import type { DemoOptions } from './integrations.ts';
import { INTERRUPTED, interruption } from './interruption.ts';
import { demoOrganization } from './organization.ts';
import { type OwnerApi, ownerApi } from './owner_api.ts';
import { putSettings, READS, remove, removeLeftover, SHOULD_READ, WRITES } from './sales_integration.ts';
import { exampleCommand } from './tasks.ts';
import { DemoError } from './watch.ts';
import { watchAction } from './watch_action.ts';
import { serviceToken, startWorker, type Target } from './worker.ts';

const COMMAND = 'npm run demo -- actions';
const KEY = 'demo-returns';

type Demo = Readonly<{
  owner: OwnerApi;
  actions: ActionApi;
  integration: IntegrationApi;
  target: Target;
  /** Where it has to be named. */
  namedUrl: string | undefined;
  signal: AbortSignal;
}>;

/** isNamed: whether another command has to name the URL as well. */
type ActionOptions = DemoOptions & Readonly<{ isNamed: boolean }>;

/** Connects a server of the demo's own, with a tool that writes. */
async function connect(api: IntegrationApi, serverUrl: string, signal: AbortSignal): Promise<void> {
  await putSettings(api, serverUrl, COMMAND);
  await api.connect();
  await api.discover();
  signal.throwIfAborted();
  await api.putTools({ accessMode: 'full', tools: [...READS, ...WRITES], effects: SHOULD_READ });
  printTimed('agents may read its orders, and propose returns');
}

/** Has a task done that needs the approval of a person. Returns its action. */
async function work({ owner, actions, target, namedUrl, signal }: Demo): Promise<DemoAction> {
  const { organizationId, url } = target;
  const task = await owner.createTask(organizationId, {
    title: 'Take part of an order back',
    ownerProfileKey: 'growth',
    spec: { objective: `Find an order with ${KEY}, and take two pieces back.` },
  });
  printTimed(`${task.identifier}  created: ${task.title}`);
  const worker = startWorker(target, printTimed, '--kind', 'task', '--exec', exampleCommand('take_back.mjs'));
  let isOver = false;
  try {
    const watching = watchAction({ owner, actions, organizationId, url: namedUrl, signal }, task);
    const ended = await Promise.race([watching, worker.failed]);
    isOver = true;
    printTimed(`${task.identifier}  is completed: ${ended.task.result?.summary}`);
    printLine(`  the task     ${url}/organizations/${organizationId}/tasks/${task.id}`);
    printLine(`  the action   ${url}/organizations/${organizationId}/actions/${ended.action.id}`);
    return ended.action;
  } finally {
    if (!isOver) await actions.cancelTask(task.id).catch(() => {});
    await worker.end();
  }
}

/** Keeps the receipt in a file, and checks it by the public keys alone. */
async function verify(actions: ActionApi, { id }: DemoAction, folder: string): Promise<void> {
  const receipt = path.join(folder, 'receipt.json');
  const keys = path.join(folder, 'keys.json');
  await writeFile(receipt, await actions.receipt(id));
  await writeFile(keys, await actions.keys());
  printLine();
  printTimed('its receipt, by business-runner receipt verify receipt.json --keys keys.json, without a network:');
  const asItIs = (_: unknown, text: string) => text;
  const streams = { out: printText, err: printError, columns: 80, styleOut: asItIs, styleErr: asItIs };
  receiptVerify(createOutput(false, streams), {
    name: 'receipt verify',
    args: [receipt],
    values: { keys },
  });
}

async function withIntegration(demo: Demo, folder: string): Promise<void> {
  const { integration, actions, signal } = demo;
  const server = await serveSales();
  try {
    printTimed(`an MCP server with made-up sales listens at ${server.url}`);
    await integration.create('Demo returns');
    try {
      printTimed(`created the integration ${KEY} of provider mcp`);
      await connect(integration, server.url, signal);
      await verify(actions, await work(demo), folder);
    } finally {
      await remove(integration);
      printTimed(`deleted ${KEY}, whose server ends with this demo`);
    }
  } finally {
    server.close();
  }
}

/**
 * An agent that reads outside, proposes a write, and waits for the person who approves it; then the receipt of what was done.
 * @throws DemoError, OptionsError or OwnerApiError
 */
export async function demoActions({ url, token, tokenFile, isNamed }: ActionOptions): Promise<void> {
  const signal = interruption();
  const owner = ownerApi({ url, token });
  await requireReady(owner, url, COMMAND);
  if (token === undefined) throw new DemoError('whoever approves needs a token: set BUSINESS_RUNNER_OWNER_TOKEN.');
  const agent = serviceToken(tokenFile);
  const organizationId = await demoOrganization(owner, printTimed);
  const integration = integrationApi({ url, token, serviceToken: agent, organizationId, key: KEY });
  const folder = await mkdtemp(path.join(tmpdir(), 'business-runner-demo-'));
  const target = { url, tokenFile, organizationId, scratch: path.join(folder, 'runs') };
  try {
    signal.throwIfAborted();
    await removeLeftover(integration, KEY, COMMAND);
    const actions = actionApi({ url, token, organizationId });
    const namedUrl = isNamed ? url : undefined;
    await withIntegration({ owner, actions, integration, target, namedUrl, signal }, folder);
  } catch (error) {
    if (!signal.aborted) throw error;
    printError('demo: interrupted');
    process.exitCode = INTERRUPTED;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
