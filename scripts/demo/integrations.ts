import { serveSales } from '../../examples/mcp/server.ts';
import { OwnerApiError } from '../owner_call.ts';
import { countPresses } from '../presses.ts';
import { printError, printLine, printText, printTimed } from '../terminal.ts';
import { requireReady } from './command.ts';
import { type DemoIntegration, type IntegrationApi, integrationApi, type SeenIntegration } from './integration_api.ts';
import { demoOrganization } from './organization.ts';
import { ownerApi } from './owner_api.ts';
import { DemoError } from './watch.ts';
import { serviceToken } from './worker.ts';

const COMMAND = 'npm run demo -- integrations';
const KEY = 'demo-sales';
const READS = ['orders.list', 'products.list', 'sales.total'];
const WRITES = ['returns.create'];
const SHOULD_READ = Object.fromEntries(READS.map((tool) => [tool, 'read']));
const INTERRUPTED = 130;

/** Where an earlier demo had its server; of anybody's own integration it is another address. */
const DEMO_SERVER = /^http:\/\/127\.0\.0\.1:\d+\/mcp$/;

/** Whether a server of the demo is there: it takes POST alone. */
async function responds(serverUrl: string): Promise<boolean> {
  const asked = fetch(serverUrl, { signal: AbortSignal.timeout(2_000) });
  return asked.then(({ status }) => status === 405).catch(() => false);
}

/** Deletes what a demo left that could not end itself. @throws DemoError where the integration is in use */
async function removeLeftover(api: IntegrationApi): Promise<void> {
  const found = await api.get().catch((error: unknown) => {
    if (error instanceof OwnerApiError && error.status === 404) return undefined;
    throw error;
  });
  if (found === undefined) return;
  const { serverUrl } = found.settings ?? {};
  if (found.provider !== 'mcp' || (serverUrl !== undefined && !DEMO_SERVER.test(serverUrl))) {
    throw new DemoError(`the demo organization has an integration ${KEY} that is not the demo's: delete it first.`);
  }
  if (serverUrl !== undefined && (await responds(serverUrl))) {
    throw new DemoError(`${KEY} is in use: another ${COMMAND} runs. Wait until it has ended, or stop it.`);
  }
  await remove(api);
  printTimed(`removed the integration ${KEY}, which an earlier demo had left`);
}

/** Deletes it, unless somebody else has. */
async function remove(api: IntegrationApi): Promise<void> {
  await api.delete().catch((error: unknown) => {
    if (!(error instanceof OwnerApiError) || error.status !== 404) throw error;
  });
}

async function putSettings(api: IntegrationApi, serverUrl: string): Promise<void> {
  try {
    await api.putSettings(serverUrl);
  } catch (error) {
    if (!(error instanceof OwnerApiError) || error.issueCode !== 'refused') throw error;
    throw new DemoError(
      `this Business Runner calls no server on its own machine. Stop it, start it by ALLOW_PRIVATE_ADDRESSES=1 npm start, and run ${COMMAND} again.`,
    );
  }
}

function table(rows: readonly (readonly string[])[]): void {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  const lines = rows.map((row) => `      ${row.map((text, column) => text.padEnd(widths[column] ?? 0)).join('  ')}`);
  printText(`\n${lines.map((line) => line.trimEnd()).join('\n')}\n\n`);
}

function showOwner({ tools }: DemoIntegration): void {
  const state = (tool: DemoIntegration['tools'][number]) =>
    `${tool.enabled ? 'on' : 'off'}${tool.unavailableReason === null ? '' : ` (${tool.unavailableReason})`}`;
  table(tools.map((tool) => [tool.key, tool.title, tool.effect, state(tool)]));
}

function showAgent(what: string, { available, unavailableReason, capabilities }: SeenIntegration): void {
  printTimed(`${what}, an agent sees ${available ? `${capabilities.length} tools:` : `it as ${unavailableReason}`}`);
  if (available) table(capabilities.map(({ tool, effect }) => [tool, effect]));
}

/** Between the steps an interruption ends the demo; a call that was sent is waited for, so that nothing of it is left. */
async function steps(api: IntegrationApi, serverUrl: string, signal: AbortSignal): Promise<void> {
  await putSettings(api, serverUrl);
  signal.throwIfAborted();
  const { connection, readiness } = await api.connect();
  printTimed(`connected to ${connection?.account.label} without a credential: it is ${readiness}`);
  signal.throwIfAborted();
  await api.discover();
  printTimed('asked it for its tools: all are off, and count as ones that write until an owner says that they read:');
  showOwner(await api.get());
  signal.throwIfAborted();
  const reading = await api.putTools({ accessMode: 'read_only', tools: READS, effects: SHOULD_READ });
  printTimed(`said which of them read, and enabled those, accessMode read_only. An owner sees:`);
  showOwner(reading);
  signal.throwIfAborted();
  showAgent('with that', await api.seen());
  await api.putTools({ accessMode: 'full', tools: [...READS, ...WRITES], effects: SHOULD_READ });
  signal.throwIfAborted();
  showAgent('with accessMode full, and the one that writes enabled', await api.seen());
  await api.setStatus('disabled');
  signal.throwIfAborted();
  showAgent('disabled by an owner', await api.seen());
}

/** Makes an integration with a server of its own, shows it, and removes it. */
async function withIntegration(api: IntegrationApi, signal: AbortSignal): Promise<void> {
  const server = await serveSales();
  try {
    printTimed(`an MCP server with made-up sales listens at ${server.url}`);
    await api.create('Demo sales');
    try {
      printTimed(`created the integration ${KEY} of provider mcp`);
      await steps(api, server.url, signal);
    } finally {
      await remove(api);
      printTimed(`deleted ${KEY}, whose server ends with this demo`);
    }
  } finally {
    server.close();
  }
}

/** Ends the demo between two steps; a second Ctrl-C does not wait. */
function interruption(): AbortSignal {
  const interrupted = new AbortController();
  const press = countPresses();
  process.on('SIGINT', () => {
    if (press() > 1) process.exit(INTERRUPTED);
    interrupted.abort();
  });
  process.on('SIGTERM', () => interrupted.abort());
  return interrupted.signal;
}

type DemoOptions = Readonly<{ url: string; token: string | undefined; tokenFile: string | undefined }>;

/**
 * An MCP server without any account: connected, discovered, its tools chosen, and seen by an owner and by an agent.
 * @throws DemoError, OptionsError or OwnerApiError
 */
export async function demoIntegrations({ url, token, tokenFile }: DemoOptions): Promise<void> {
  const signal = interruption();
  const owner = ownerApi({ url, token });
  await requireReady(owner, url, COMMAND);
  const agent = serviceToken(tokenFile);
  const organizationId = await demoOrganization(owner, printTimed);
  const api = integrationApi({ url, token, serviceToken: agent, organizationId, key: KEY });
  try {
    signal.throwIfAborted();
    await removeLeftover(api);
    await withIntegration(api, signal);
  } catch (error) {
    if (!signal.aborted) throw error;
    printError('demo: interrupted');
    process.exitCode = INTERRUPTED;
    return;
  }
  printLine();
  printLine(`  who decided  ${url}/organizations/${organizationId}/audit`);
  printLine(`  the calls    ${url}/docs`);
  printLine(
    '  the server   examples/mcp/server.ts (npx node examples/mcp/server.ts 4100 lets you connect it yourself)',
  );
}
