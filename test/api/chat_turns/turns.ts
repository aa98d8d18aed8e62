import { randomUUID } from 'node:crypto';
import type { Message } from '../../../api/messages/schema.ts';
import { expectSuccess, type Fields, PULL } from '../../support/api_fixtures.ts';
import type { TestApp } from '../../support/app.ts';
import type { TestOrganization } from '../../support/fixtures.ts';

export type TurnItem = Readonly<{
  organizationId: string;
  runRequestId: string;
  leaseToken: string;
  kind: string;
  chat: { chatId: string; messageId: string };
}>;

export type Turn = Readonly<{
  kind: string;
  organizationId: string;
  chatId: string;
  messageId: string;
  runId: string;
  leaseToken: string;
  executionToken: string;
}>;

/** The next chat turn of the organization, which has to have one. */
export async function claimTurn(app: TestApp, org: TestOrganization): Promise<TurnItem> {
  // What was refused a moment ago may still be locked, and a pull skips that.
  const body = { workerId: 'runtime', organizationIds: [org.organizationId], kinds: ['chat'], waitMs: 10_000 };
  const [item] = expectSuccess(await app.service.post<{ items: TurnItem[] }>(PULL, body)).items;
  if (!item) throw new Error('no chat turn to pull');
  return item;
}

export function startClaim(app: TestApp, item: TurnItem, runId: string = randomUUID()) {
  const { organizationId, leaseToken } = item;
  const body = { organizationId, leaseToken, runId, workerId: 'runtime' };
  return app.service.post<Omit<Turn, 'leaseToken'>>(`/internal/run-requests/${item.runRequestId}/start`, body);
}

/** Claims and starts the next turn. */
export async function startTurn(app: TestApp, org: TestOrganization): Promise<Turn> {
  const item = await claimTurn(app, org);
  return { ...expectSuccess(await startClaim(app, item)), leaseToken: item.leaseToken };
}

type Written = { revision: number; status: string };

/** The calls of the runtime that holds a turn. */
export function runtimeOf(app: TestApp, turn: Turn) {
  const { organizationId, leaseToken, runId } = turn;
  const headers = { 'x-organization-id': organizationId, 'x-lease-token': leaseToken };
  const post = <T = { status: string }>(call: string, fields: Fields) =>
    app.service.post<T>(`/internal/runs/${runId}/${call}`, { organizationId, leaseToken, ...fields });
  return {
    post,
    append: (baseRevision: number, append: string) => post<Written>('message', { baseRevision, append }),
    write: (baseRevision: number, parts: readonly Fields[]) => post<Written>('message', { baseRevision, parts }),
    complete: (output: Fields = {}) => post('complete', { output: { kind: 'chat_message', ...output } }),
    fail: (error: Fields = {}) =>
      post('fail', { error: { code: 'broken', message: 'It broke', retryable: false, ...error } }),
    conversation: (query: Readonly<Record<string, number>> = {}) =>
      app.service.get<{
        messages: Message[];
        earlier: boolean;
        messageId: string;
        userMessageId: string;
        chat: Fields;
      }>(`/internal/runs/${runId}/conversation`, { headers, query }),
    attachment: (attachmentId: string) =>
      app.service.fetch(`/internal/runs/${runId}/attachments/${attachmentId}/content`, { headers }),
  };
}

/** Replies the pending message of a chat with these parts. */
export async function replyWith(app: TestApp, org: TestOrganization, parts: readonly Fields[]): Promise<Turn> {
  const turn = await startTurn(app, org);
  expectSuccess(await runtimeOf(app, turn).complete({ parts }));
  return turn;
}
