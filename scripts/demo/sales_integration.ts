import { OwnerApiError } from '../owner_call.ts';
import { printTimed } from '../terminal.ts';
import type { IntegrationApi } from './integration_api.ts';
import { DemoError } from './watch.ts';

export const READS = ['orders.list', 'products.list', 'sales.total'];
export const WRITES = ['returns.create'];
export const SHOULD_READ = Object.fromEntries(READS.map((tool) => [tool, 'read']));

/** Where an earlier demo had its server; of anybody's own integration it is another address. */
const DEMO_SERVER = /^http:\/\/127\.0\.0\.1:\d+\/mcp$/;

/** Whether a server of the demo is there: it takes POST alone. */
async function responds(serverUrl: string): Promise<boolean> {
  const asked = fetch(serverUrl, { signal: AbortSignal.timeout(2_000) });
  return asked.then(({ status }) => status === 405).catch(() => false);
}

/** Deletes what a demo left that could not end itself. @throws DemoError where the integration is in use */
export async function removeLeftover(api: IntegrationApi, key: string, command: string): Promise<void> {
  const found = await api.get().catch((error: unknown) => {
    if (error instanceof OwnerApiError && error.status === 404) return undefined;
    throw error;
  });
  if (found === undefined) return;
  const { serverUrl } = found.settings ?? {};
  if (found.provider !== 'mcp' || (serverUrl !== undefined && !DEMO_SERVER.test(serverUrl))) {
    throw new DemoError(`the demo organization has an integration ${key} that is not the demo's: delete it first.`);
  }
  if (serverUrl !== undefined && (await responds(serverUrl))) {
    throw new DemoError(`${key} is in use: another ${command} runs. Wait until it has ended, or stop it.`);
  }
  await remove(api);
  printTimed(`removed the integration ${key}, which an earlier demo had left`);
}

/** Deletes it, unless somebody else has. */
export async function remove(api: IntegrationApi): Promise<void> {
  await api.delete().catch((error: unknown) => {
    if (!(error instanceof OwnerApiError) || error.status !== 404) throw error;
  });
}

/** @throws DemoError where the service calls no server of its own machine */
export async function putSettings(api: IntegrationApi, serverUrl: string, command: string): Promise<void> {
  try {
    await api.putSettings(serverUrl);
  } catch (error) {
    if (!(error instanceof OwnerApiError) || error.issueCode !== 'refused') throw error;
    throw new DemoError(
      `this Business Runner calls no server on its own machine. Stop it, start it by ALLOW_PRIVATE_ADDRESSES=1 npm start, and run ${command} again.`,
    );
  }
}
