import { serveSales } from '../../examples/mcp/server.ts';
import { printError, printLine, printText, printTimed } from '../terminal.ts';
import { requireReady } from './command.ts';
import { type DemoIntegration, type IntegrationApi, integrationApi, type SeenIntegration } from './integration_api.ts';
import { INTERRUPTED, interruption } from './interruption.ts';
import { demoOrganization } from './organization.ts';
import { ownerApi } from './owner_api.ts';
import { putSettings, READS, remove, removeLeftover, SHOULD_READ, WRITES } from './sales_integration.ts';
import { serviceToken } from './worker.ts';

const COMMAND = 'npm run demo -- integrations';
const KEY = 'demo-sales';

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
  await putSettings(api, serverUrl, COMMAND);
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

export type DemoOptions = Readonly<{ url: string; token: string | undefined; tokenFile: string | undefined }>;

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
    await removeLeftover(api, KEY, COMMAND);
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
