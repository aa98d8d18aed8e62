import { ChatEventsError, chatEvents, streamedText } from '../chat_events.ts';
import type { OwnerApi } from './api.ts';
import { CommandError, EXIT, type Exit, usageError } from './errors.ts';
import type { Values } from './options.ts';
import { type Output, oneLine, wrapped } from './output.ts';
import { isUuid, shortId, theOne } from './references.ts';
import { type Chat, chatSchema, type Message, messageSchema, type Part, postedSchema } from './schemas.ts';
import type { Stop } from './stop.ts';

const MOST = 10_000;
const MAX_TITLE = 60;
/** As long as a worker that is there takes at most until it begins. */
const HINT_AFTER_MS = 3_000;
const FINAL = ['complete', 'failed', 'cancelled'];
const YES: Readonly<Record<string, boolean>> = { yes: true, y: true, no: false, n: false };

export type AskContext = Readonly<{ api: OwnerApi; home: string; output: Output; values: Values; stop: Stop }>;

async function chatOf({ api, home, values }: AskContext, text: string): Promise<Chat> {
  const { chat } = values;
  if (chat === undefined) return api.post(chatSchema, `${home}/chats`, { title: oneLine(text, MAX_TITLE) });
  if (isUuid(chat)) return api.get(chatSchema, `${home}/chats/${chat}`);
  return theOne(await api.list(chatSchema, `${home}/chats`, {}, MOST), chat, 'chat');
}

const asks = ({ kind, status }: Part) => kind === 'question' || (status === 'pending' && kind !== 'text');

/** The message; an answer, where the last reply of the chat asks for one. @throws CommandError */
async function messageBody({ api, home, values }: AskContext, chat: Chat, text: string): Promise<object> {
  const said = { author: { kind: 'human' }, parts: [{ kind: 'text', text }] };
  if (values.chat === undefined) return said;
  const path = `${home}/chats/${chat.id}/messages`;
  const last = (await api.list(messageSchema, path, { role: 'assistant' }, MOST)).at(-1);
  const [part, second] = last?.status === 'complete' ? last.parts.filter(asks) : [];
  if (!last || !part) return said;
  if (second) throw usageError('the last reply asks several things, and this command gives one answer (createMessage)');
  const target = { messageId: last.id, partId: part.id };
  if (part.kind === 'question') return { author: said.author, answers: [{ ...target, value: text }] };
  const approved = YES[text.trim().toLowerCase()];
  if (approved === undefined) throw usageError('the last reply wants an approval: answer yes or no');
  return { author: said.author, answers: [{ ...target, approved }] };
}

/** What the reply holds beside its text. */
function printParts(output: Output, { parts }: Message): void {
  for (const part of parts) {
    if (part.kind === 'text') continue;
    const asked = part.question ?? part.text ?? part.title ?? part.summary ?? '';
    const what = part.kind === 'question' ? asked : `${part.kind.replace('_', ' ')}: ${asked}`;
    const how = asks(part) && part.kind !== 'question' ? ['- yes', '- no'] : [];
    const lines = [what, ...(part.options ?? []).map((option) => `- ${option}`), ...how];
    for (const line of lines.flatMap((one) => wrapped(one, output.columns))) output.line(line, 'yellow');
    if (part.actionId) output.line(output.call(`actions show ${shortId(part.actionId)}`), 'dim');
  }
}

/** Prints the reply while it is written; returns it when it is final. `onBegun` is called at its first words. */
async function follow(context: AskContext, chat: Chat, reply: Message, onBegun: () => void): Promise<Message> {
  const { api, home, output, stop } = context;
  let written = '';
  const hint = setTimeout(() => {
    output.progress(
      "nobody has begun to reply: npm run worker -- --kind chat --exec 'COMMAND', or --llm URL --model NAME",
    );
  }, HINT_AFTER_MS);
  const url = () => `${api.url}${home}/chats/${chat.id}/events`;
  try {
    for await (const event of chatEvents({ url, headers: api.authorization, signal: stop.signal })) {
      if (event.message?.id !== reply.id) continue;
      const text = streamedText(event.message);
      if (text !== '') {
        clearTimeout(hint);
        onBegun();
      }
      // Parts may also be written anew.
      if (!output.json) output.text(text.startsWith(written) ? text.slice(written.length) : `\n${text}`);
      written = text;
      if (FINAL.includes(event.message.status)) {
        if (!output.json && written !== '' && !written.endsWith('\n')) output.line();
        return messageSchema.parse(event.message);
      }
    }
  } catch (error) {
    if (!(error instanceof ChatEventsError)) throw error;
    const exit = [401, 403].includes(error.status)
      ? EXIT.forbidden
      : error.status === 404
        ? EXIT.notFound
        : EXIT.refused;
    throw new CommandError(exit, error.message);
  } finally {
    clearTimeout(hint);
  }
  throw new CommandError(EXIT.failed, 'the chat was closed before its reply was complete');
}

export async function ask(context: AskContext, text: string): Promise<Exit> {
  const { api, home, output, stop } = context;
  const chat = await chatOf(context, text);
  const path = `${home}/chats/${chat.id}/messages`;
  const { assistantMessage } = await api.post(postedSchema, path, await messageBody(context, chat, text));
  const where = `${api.url}${path}`;
  stop.goesOn(`no worker has begun to reply; a reply will stand in ${where}`);
  const reply = await follow(context, chat, assistantMessage, () =>
    stop.goesOn(`the reply is still being written: ${where}`),
  );
  if (output.json) output.value(reply);
  else printParts(output, reply);
  if (reply.status === 'complete') {
    output.progress(`${output.call(`ask --chat ${shortId(chat.id)} TEXT`)} continues this chat`, 'dim');
    return EXIT.done;
  }
  const why = reply.error ? `: ${reply.error.message}` : '';
  throw new CommandError(EXIT.failed, `the reply ${reply.status === 'failed' ? 'failed' : 'was cancelled'}${why}`);
}
