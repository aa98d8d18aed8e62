import { randomUUID } from 'node:crypto';
import { PULL_CHANNEL } from '../../engine/db/channels.ts';
import type { TestApp } from './app.ts';
import { until } from './wait.ts';

/**
 * Whether `work` wakes the workers that wait. Notifications keep their order: what comes between two markers of our own
 * was sent because of the work.
 */
export async function wakesPulls(app: TestApp, work: () => Promise<unknown>): Promise<boolean> {
  const { listener, notifier } = app.services;
  const heard: string[] = [];
  const stop = listener.subscribe(PULL_CHANNEL, (payload) => void heard.push(payload));
  const mark = async () => {
    const marker = randomUUID();
    notifier.mark(PULL_CHANNEL, marker);
    await until('the marker arrives', () => heard.includes(marker));
    return heard.indexOf(marker);
  };
  await until('the listener is connected', () => listener.connected());
  const from = await mark();
  await work();
  const to = await mark();
  stop();
  return to > from + 1;
}
