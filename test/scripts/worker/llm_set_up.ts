import type { Test } from 'tap';
import { setUpChat } from './chat_set_up.ts';
import { type ModelReply, startModel } from './model.ts';
import type { Script } from './stand_in.ts';

export const KEY = 'key-of-the-model-0123456789';

/** A worker that replies by a model, which `serve` is. */
export async function setUp(
  t: Test,
  serve: (reply: ModelReply) => void | Promise<void>,
  script: Script = {},
  ...argv: string[]
) {
  const model = await startModel(t, serve);
  const given = ['--llm', model.url, '--model', 'small', ...argv];
  return { ...(await setUpChat(t, script, given, KEY)), model };
}

/** What a good model does, between the first words and the last. */
export function usual({ event, say, res }: ModelReply, between: () => void | Promise<void> = () => {}) {
  event({ id: 'x', choices: [{ index: 0, delta: { role: 'assistant', content: '' }, finish_reason: null }] });
  say('Hello');
  return Promise.resolve(between()).then(() => {
    say(', Größe 😀', 'stop');
    event({ id: 'x', choices: [], usage: { prompt_tokens: 12, completion_tokens: 5, total_tokens: 17 } });
    event('[DONE]');
    res.end();
  });
}

/** Says the first words, and then nothing. */
export function begin(replies: ModelReply[]) {
  return (reply: ModelReply): void => {
    replies.push(reply);
    reply.say('Hel');
  };
}
