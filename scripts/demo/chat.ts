import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { streamedText } from '../chat_events.ts';
import type { OwnerApi } from './owner_api.ts';
import { EXAMPLES, exampleCommand } from './tasks.ts';
import { DemoError } from './watch.ts';

/** What the demo's worker runs for each chat. */
export const CHAT_COMMAND = exampleCommand('chat_answer.mjs');
const FINAL = ['complete', 'failed', 'cancelled'];
const QUESTION = 'Which region sold most in the third quarter, and how much came back?';

/**
 * Asks in a chat of its own, and shows the answer while it is written. Returns where the chat is.
 * @throws DemoError when there is no whole answer by `deadline` (`performance.now()`)
 */
export async function demoChat(
  api: OwnerApi,
  organizationId: string,
  options: Readonly<{ say: (line: string) => void; write: (text: string) => void; deadline: number }>,
): Promise<string> {
  const { say, write, deadline } = options;
  const chat = await api.createChat(organizationId, 'Sales of the third quarter');
  const file = { id: randomUUID(), name: 'sales.csv', type: 'text/csv' };
  await api.attach(organizationId, chat.id, file, readFileSync(path.join(EXAMPLES, 'sales.csv')));
  const { assistantMessage } = await api.sendMessage(organizationId, chat.id, {
    author: { kind: 'human', displayName: 'You' },
    parts: [{ kind: 'text', text: QUESTION }],
    attachmentIds: [file.id],
  });
  say(`asked in a chat, with ${file.name}: ${QUESTION}`);
  const late = AbortSignal.timeout(Math.max(1, Math.ceil(deadline - performance.now())));
  let shown = '';
  try {
    for await (const { message } of api.chatEvents(organizationId, chat.id, late)) {
      if (message?.id !== assistantMessage.id) continue;
      const text = streamedText(message);
      if (shown === '' && text !== '') write('\n      ');
      write(text.slice(shown.length).replaceAll('\n', '\n      '));
      shown = text;
      if (message.status === 'complete') {
        write('\n\n');
        say(`the answer is complete, after ${message.revision} revisions`);
        return `/organizations/${organizationId}/chats/${chat.id}/messages`;
      }
      if (FINAL.includes(message.status)) {
        write('\n');
        throw new DemoError(`the answer is ${message.status}: ${message.error?.message ?? 'by somebody else'}.`);
      }
    }
  } catch (error) {
    if (!late.aborted) throw error;
    throw new DemoError('the answer is not complete. Is another worker answering chats, or the API overloaded?');
  }
  throw new DemoError('the chat was closed before its answer was complete.');
}
