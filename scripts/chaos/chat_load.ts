import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import type { SentMessage } from './chat_checks.ts';
import { type ChatReader, isFinal, readChat } from './chat_reader.ts';
import type { Recorder } from './facts.ts';
import { type Owner, RefusedError } from './owner.ts';
import type { Random } from './random.ts';

const ORGANIZATIONS = 2;
const sentSchema = z.looseObject({ assistantMessage: z.looseObject({ id: z.string() }) });

export type ChatLoadOptions = Readonly<{
  owner: Owner;
  urls: readonly string[];
  random: Random;
  recorder: Recorder;
  chats: number;
  signal: AbortSignal;
}>;

/** A chat, somebody who writes in it, and some who read. */
export type Conversation = Readonly<{
  /** Asks, and returns the message of the reply. */
  ask: () => Promise<string>;
  cancel: (messageId: string) => Promise<void>;
  /** Sees everything: it is never left. */
  reader: ChatReader;
  restless: ChatReader;
}>;

export type ChatLoad = Readonly<{
  conversations: readonly Conversation[];
  sent: readonly SentMessage[];
  /** Rejects when a reader cannot go on. */
  reading: Promise<void>;
}>;

/** Makes organizations with their chats over HTTP, and begins to read them. */
export async function createChats(options: ChatLoadOptions): Promise<ChatLoad> {
  const { owner, urls, recorder, signal } = options;
  const sent: SentMessage[] = [];
  const reading: Promise<void>[] = [];
  const homes: { organizationId: string; home: string }[] = [];
  for (let number = 0; number < ORGANIZATIONS; number += 1) {
    const organizationId = randomUUID();
    const home = `/organizations/${organizationId}`;
    await owner.create(home, home, { slug: `chats-${organizationId.slice(0, 8)}`, name: 'Chats' });
    await owner.create(`${home}/agent-profiles`, 'chat', { key: 'chat', name: 'Chat', kind: 'chat' });
    homes.push({ organizationId, home });
  }

  async function conversation(number: number): Promise<Conversation> {
    const { organizationId = '', home = '' } = homes[number % homes.length] ?? {};
    const random = options.random.fork(`chat-${number}`);
    const chatId = await owner.create(`${home}/chats`, `chat-${number}`, { title: `Chat ${number}` });
    const chat = `${home}/chats/${chatId}`;
    let asked = 0;

    function read(name: string, restless: boolean): ChatReader {
      const path = `${chat}/events`;
      const followed = readChat({ name, urls, path, random: random.fork(name), recorder, restless, signal });
      reading.push(followed.reading);
      return followed.reader;
    }

    return {
      async ask() {
        asked += 1;
        const question = `Question ${number}.${asked} ${randomUUID()}`;
        const body = { author: { kind: 'human', displayName: 'Anna' }, parts: [{ kind: 'text', text: question }] };
        const idOf = (data: unknown) => sentSchema.parse(data).assistantMessage.id;
        const messageId = await owner.create(`${chat}/messages`, question, body, idOf);
        sent.push({ organizationId, chatId, messageId, question });
        return messageId;
      },
      async cancel(messageId) {
        try {
          await owner.post(`${chat}/messages/${messageId}/cancel`, {});
          recorder.count('a reply cancelled');
        } catch (error) {
          // It was final already, or the first try came through although its response did not.
          if (!(error instanceof RefusedError) || error.code !== 'message_not_cancellable') throw error;
          recorder.count('a cancel refused');
        }
      },
      reader: read(`reader-${number}`, false),
      restless: read(`restless-${number}`, true),
    };
  }

  const conversations: Conversation[] = [];
  for (let number = 1; number <= options.chats; number += 1) conversations.push(await conversation(number));
  return { conversations, sent, reading: Promise.all(reading).then(() => {}) };
}

/**
 * Asks `turns` times, each as soon as the reply before is final. With `cancels` some replies are cancelled, before or
 * while they come.
 */
export async function converse(
  { ask, cancel, reader }: Conversation,
  options: Readonly<{ turns: number; cancels: boolean; random: Random; signal: AbortSignal; onFinal: () => void }>,
): Promise<void> {
  const { turns, cancels, random, signal, onFinal } = options;
  for (let turn = 0; turn < turns; turn += 1) {
    const messageId = await ask();
    if (cancels && random.chance(0.2)) {
      await sleep(random.chance(0.3) ? 0 : random.between(0, 1_200), undefined, { signal });
      await cancel(messageId);
    }
    await reader.until(messageId, isFinal);
    onFinal();
  }
}
