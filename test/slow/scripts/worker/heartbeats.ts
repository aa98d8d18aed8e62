import type { TestApp } from '../../../support/app.ts';

/** How long the worker lets a heartbeat wait where nothing happens. */
export const HEARTBEAT_WAIT_MS = 20_000;

/** The heartbeats that the API responded to, as it logged them. */
export function heartbeats(app: TestApp): Record<string, unknown>[] {
  return app.logged.filter((line) => line['msg'] === 'request' && String(line['path']).endsWith('/heartbeat'));
}
