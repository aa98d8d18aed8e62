import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { streamedText } from '../chat_events.ts';
import type { OwnerApi } from './owner_api.ts';
import { EXAMPLES, exampleCommand } from './tasks.ts';
import { DemoError } from './watch.ts';
import type { Print } from './worker.ts';

/** The demo's worker runs this for each chat. */
export const CHAT_COMMAND = exampleCommand('chat_reply.mjs');
const FINAL_STATUSES = ['complete', 'failed', 'cancelled'];
const QUESTION = 'Which region sold most in the third quarter, and how much came back?';

/** Opens a chat with the shipped sales file attached, and sends a question. Returns the ids of the chat and of the reply. */
export async function sendQuestion(api: OwnerApi, organizationId: string, title: string, question: string) {
  const chat = await api.createChat(organizationId, title);
  const file = { id: randomUUID(), name: 'sales.csv', type: 'text/csv' };
  await api.attach(organizationId, chat.id, file, readFileSync(path.join(EXAMPLES, 'sales.csv')));
  const { assistantMessage } = await api.sendMessage(organizationId, chat.id, {
    author: { kind: 'human', displayName: 'You' },
    parts: [{ kind: 'text', text: question }],
    attachmentIds: [file.id],
  });
  return { chatId: chat.id, messageId: assistantMessage.id };
}

/**
 * Asks a question in a new chat, and writes the reply while it streams. Returns the path of the chat's messages.
 * @throws DemoError when the reply is not complete by `deadline` (`performance.now()`); the reason of `signal`
 */
export async function demoChat(
  api: OwnerApi,
  organizationId: string,
  options: Readonly<{ print: Print; write: (text: string) => void; deadline: number; signal: AbortSignal }>,
): Promise<string> {
  const { print, write, deadline, signal } = options;
  const { chatId, messageId } = await sendQuestion(api, organizationId, 'Sales of the third quarter', QUESTION);
  print(`asked in a chat, with sales.csv: ${QUESTION}`);
  const timeout = AbortSignal.timeout(Math.max(1, Math.ceil(deadline - performance.now())));
  let written = '';
  try {
    for await (const { message } of api.chatEvents(organizationId, chatId, AbortSignal.any([timeout, signal]))) {
      if (message?.id !== messageId) continue;
      const text = streamedText(message);
      if (written === '' && text !== '') write('\n      ');
      write(text.slice(written.length).replaceAll('\n', '\n      '));
      written = text;
      if (message.status === 'complete') {
        write('\n\n');
        print(`the reply is complete, after ${message.revision} revisions`);
        return `/organizations/${organizationId}/chats/${chatId}/messages`;
      }
      if (FINAL_STATUSES.includes(message.status)) {
        write('\n');
        throw new DemoError(`the reply is ${message.status}: ${message.error?.message ?? 'ended by somebody else'}.`);
      }
    }
  } catch (error) {
    if (!timeout.aborted) throw error;
    throw new DemoError('the reply is not complete. Is another worker replying in chats, or the API overloaded?');
  }
  throw new DemoError('the chat was closed before its reply was complete.');
}
