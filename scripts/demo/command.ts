import { ChatEventsError } from '../chat_events.ts';
import { OwnerApiError } from '../owner_call.ts';
import { printError } from '../terminal.ts';
import { OptionsError } from '../worker/options.ts';
import type { OwnerApi } from './owner_api.ts';
import { DemoError } from './watch.ts';

/** @throws DemoError, with what to do, when no API is ready at `url` */
export async function requireReady(api: OwnerApi, url: string, command: string): Promise<void> {
  await api.ready().catch((error: unknown) => {
    const why = error instanceof OwnerApiError ? 'is not ready yet' : 'does not respond';
    throw new DemoError(`Business Runner at ${url} ${why}. Run npm start in another terminal, then ${command} again.`);
  });
}

/** Runs a command; an error that a person can fix becomes one line and exit status 1. */
export async function runDemoCommand(name: string, command: () => Promise<void>): Promise<void> {
  try {
    await command();
  } catch (error) {
    const known = [DemoError, OptionsError, OwnerApiError, ChatEventsError].some((kind) => error instanceof kind);
    if (!known && !(error instanceof Error && error.name === 'ApiError')) throw error;
    const unauthorized = (error as { status?: number }).status === 401;
    const setting = error instanceof OwnerApiError ? 'set BUSINESS_RUNNER_OWNER_TOKEN' : 'give --token-file';
    const hint = unauthorized ? ` (${setting})` : '';
    printError(`${name}: ${(error as Error).message}${hint}`);
    process.exitCode = 1;
  }
}
