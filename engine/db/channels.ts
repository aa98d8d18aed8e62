import type { Notifier } from './notify.ts';

/** Somebody's pull may find something now: a request was published, or a slot became free. */
export const PULL_CHANNEL = 'runner_pull';
/** A chat has a new revision of an agent's message, or was archived. */
export const CHAT_CHANNEL = 'runner_chat';

/** A run was cancelled: the payload is its id. */
export const STOP_CHANNEL = 'runner_stop';

/** What a notification of `PULL_CHANNEL` carries. */
export function pullPayload(organizationId: string, kind: string): string {
  return `${organizationId} ${kind}`;
}

/** What a notification of `CHAT_CHANNEL` carries. */
export function chatPayload(organizationId: string, chatId: string): string {
  return `${organizationId} ${chatId}`;
}

/** The organization and kind of a `pullPayload`; undefined for what is none. */
export function pulledFrom(payload: string): Readonly<{ organizationId: string; kind: string }> | undefined {
  const [organizationId, kind] = payload.split(' ');
  return organizationId && kind ? { organizationId, kind } : undefined;
}

/** Marks what `app.wake` noted: a channel and a payload a line. After the commit, never inside it (docs/decisions/0002). */
export function markWakes(notifier: Pick<Notifier, 'mark'>, wakes: string): void {
  for (const line of wakes.split('\n')) {
    const space = line.indexOf(' ');
    if (space > 0) notifier.mark(line.slice(0, space), line.slice(space + 1));
  }
}
