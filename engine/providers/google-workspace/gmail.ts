import { z } from 'zod';
import { ProviderError } from '../outgoing/index.ts';
import { counted, quoted } from '../texts.ts';
import type { FileRule, LookUpResult, Proposed } from '../tool.ts';
import { attachmentBytes, message, partsOf, shownMessage } from './message.ts';
import { type Message, upload } from './mime.ts';
import { covers } from './services.ts';
import {
  fileBytes,
  KEY,
  openStream,
  postStream,
  type Read,
  read,
  readJson,
  readPage,
  urlOf,
  type Write,
  write,
} from './site.ts';
import { listed, sizeText } from './wording.ts';

const ME = '/gmail/v1/users/me';
/** What Gmail takes of a message with all that is attached to it. */
const MAX_MESSAGE_BYTES = 35 * 1024 * 1024;
const MAX_RECIPIENTS = 100;

const id = z.string().regex(/^[A-Za-z0-9_-]{1,200}$/);
const list = z.array(z.email()).min(1).max(50);
const mail = {
  to: list,
  cc: list.optional(),
  bcc: list.optional(),
  subject: z
    .string()
    .max(900)
    .regex(/^[^\p{Cc}]*$/u, 'must be one line'),
  body: z.string().max(200_000).describe('plain text'),
  threadId: id.optional().describe('of a reply: its thread'),
  inReplyTo: z
    .string()
    .regex(/^<[!-;=?-~]{1,500}>$/)
    .optional()
    .describe('of a reply: the messageId of the message'),
};
type Mail = z.output<z.ZodObject<typeof mail>>;

const rule: FileRule = { maxBytes: 25 * 1024 * 1024 };
const attachments: Readonly<Record<string, FileRule>> = Object.fromEntries(
  Array.from({ length: 10 }, (_, index) => [`attachment${index + 1}`, rule]),
);
const ATTACHED = 'Files: attachment1 to attachment10, 25 MB together.';

function checkRecipients({ to, cc = [], bcc = [] }: Mail) {
  return to.length + cc.length + bcc.length <= MAX_RECIPIENTS
    ? []
    : [{ path: ['to'], message: `are more than ${MAX_RECIPIENTS} recipients with cc and bcc`, code: 'too_big' }];
}

/** Each list has its share, so that none pushes another one out of what people read. */
const LONGEST_LIST = 350;

function mailText(what: string, { args, files }: Proposed<Mail, null>): string {
  const { to, cc = [], bcc = [] } = args;
  const kinds = [['to', to] as const, ['cc', cc] as const, ['bcc', bcc] as const];
  const recipients = kinds.flatMap(([kind, people]) =>
    people.length === 0 ? [] : [`${kind} ${listed(people, LONGEST_LIST)}`],
  );
  const attached = Object.values(files).map(({ name, sizeBytes }) => `${quoted(name, 40)} (${sizeText(sizeBytes)})`);
  return [
    `${what} ${quoted(args.subject, 150)} to ${counted(to.length + cc.length + bcc.length, 'recipient')}`,
    ...recipients,
    attached.length === 0 ? 'without attachments' : `with ${listed(attached, LONGEST_LIST)}`,
    `text: ${quoted(args.body, 200)}`,
    ...(args.inReplyTo === undefined ? [] : [`in reply to ${args.inReplyTo}`]),
  ].join('; ');
}

/** A message is known by it, and found. */
const messageIdOf = (actionId: string) => `${actionId}@business-runner.invalid`;

function mailOf({ args, files, actionId }: Write<Mail>, metadata: unknown) {
  const { threadId: _, ...rest } = args;
  const attached = Object.values(files).map((file) => ({ ...file, open: async () => fileBytes(file) }));
  const sent: Message = { ...rest, messageId: messageIdOf(actionId), attachments: attached };
  const body = upload(metadata, sent);
  if (body.sizeBytes <= MAX_MESSAGE_BYTES) return body;
  throw new ProviderError(KEY, 'too_large', 'The message with its attachments is larger than Gmail takes.', {
    isRefusal: true,
    isOurs: true,
  });
}

const sentMessage = z.object({ id: z.string(), threadId: z.string().optional() });
const draft = z.object({ id: z.string(), message: sentMessage.optional() });
const messages = z.object({
  messages: z.array(sentMessage).default([]),
  nextPageToken: z.string().optional(),
  resultSizeEstimate: z.int().optional(),
});
const drafts = z.object({ drafts: z.array(draft).default([]) });

/** Search is not at once complete: what it does not show may be there. */
function found<T>(list: readonly T[]): LookUpResult {
  const [first] = list;
  return first === undefined ? { outcome: 'none' } : { outcome: 'found', result: first };
}

const searchOf = ({ actionId }: Write<Mail>) => `rfc822msgid:${messageIdOf(actionId)}`;

async function readAttachment(call: Read<Readonly<{ messageId: string; partId: string }>>) {
  const { messageId, partId } = call.args;
  const path = `${ME}/messages/${messageId}`;
  const { payload } = await readJson(call, 'gmail', urlOf('gmail', path, { format: 'full' }), message);
  const one = partsOf(payload).find((part) => part.partId === partId && part.filename);
  if (!one) throw new ProviderError(KEY, 'not_found', 'The message has no attachment of this part.');
  const { filename = '', mimeType = 'application/octet-stream', body } = one;
  const facts = { partId, filename, mimeType, size: body?.size };
  const file = { name: filename, contentType: mimeType };
  if (body?.attachmentId === undefined) {
    const bytes = Buffer.from(body?.data ?? '', 'base64url');
    return {
      data: facts,
      file: {
        ...file,
        body: (async function* () {
          yield bytes;
        })(),
      },
    };
  }
  // Ids of attachments change from one reading to the next; those of parts stay.
  const url = urlOf('gmail', `${path}/attachments/${encodeURIComponent(body.attachmentId)}`);
  const stream = await openStream(call, 'gmail', url);
  return { data: facts, file: { ...file, body: attachmentBytes(stream.body) } };
}

export const gmail = [
  read({
    key: 'google_workspace.gmail.messages.list',
    title: 'Find messages',
    description: 'Lists ids of messages that match a query of Gmail, newest first.',
    scopes: covers.gmailRead,
    input: {
      q: z
        .string()
        .max(1_000)
        .optional()
        .describe('as in the search box: from:, to:, subject:, after:, has:attachment'),
      labelIds: z.array(id).max(20).optional(),
      includeSpamTrash: z.boolean().optional(),
      maxResults: z.int().min(1).max(200).optional(),
    },
    async read(call) {
      const { labelIds = [], ...query } = call.args;
      const url = urlOf('gmail', `${ME}/messages`, query);
      for (const label of labelIds) url.searchParams.append('labelIds', label);
      const { nextPageToken, ...data } = await readPage(call, 'gmail', url, messages);
      return { data, nextCursor: nextPageToken };
    },
  }),
  read({
    key: 'google_workspace.gmail.messages.get',
    title: 'Read a message',
    description: 'Reads one message: who, when, its text, and what is attached.',
    scopes: covers.gmailRead,
    input: { id },
    read: async (call) => ({
      data: shownMessage(
        await readJson(call, 'gmail', urlOf('gmail', `${ME}/messages/${call.args.id}`, { format: 'full' }), message),
      ),
    }),
  }),
  read({
    key: 'google_workspace.gmail.attachments.get',
    title: 'Read an attachment',
    description: 'Reads a file that is attached to a message.',
    scopes: covers.gmailRead,
    input: {
      messageId: id,
      partId: z
        .string()
        .regex(/^[0-9.]{1,100}$/)
        .describe('of the attachments of the message'),
    },
    read: readAttachment,
  }),
  write({
    key: 'google_workspace.gmail.drafts.create',
    title: 'Write a draft',
    description: `Writes a draft, which is not sent. ${ATTACHED}`,
    risk: 'low',
    scopes: covers.gmailCompose,
    input: mail,
    files: attachments,
    check: checkRecipients,
    summary: (proposed) => mailText('Write a draft, which is not sent:', proposed),
    execute: (call) => {
      const { threadId } = call.args;
      const body = mailOf(call, { message: threadId === undefined ? {} : { threadId } });
      return postStream(
        call,
        'gmail',
        { url: urlOf('gmail', `/upload${ME}/drafts`, { uploadType: 'multipart' }), body },
        draft,
      );
    },
    lookUp: async (call) =>
      found((await readJson(call, 'gmail', urlOf('gmail', `${ME}/drafts`, { q: searchOf(call) }), drafts)).drafts),
  }),
  write({
    key: 'google_workspace.gmail.messages.send',
    title: 'Send a message',
    description: `Sends an e-mail. ${ATTACHED}`,
    risk: 'external',
    scopes: covers.gmailSend,
    input: mail,
    files: attachments,
    check: checkRecipients,
    summary: (proposed) => mailText('Send an e-mail:', proposed),
    execute: (call) => {
      const { threadId } = call.args;
      const body = mailOf(call, threadId === undefined ? {} : { threadId });
      return postStream(
        call,
        'gmail',
        { url: urlOf('gmail', `/upload${ME}/messages/send`, { uploadType: 'multipart' }), body },
        sentMessage,
      );
    },
    async lookUp(call) {
      const url = urlOf('gmail', `${ME}/messages`, { q: searchOf(call), includeSpamTrash: true });
      return found((await readJson(call, 'gmail', url, messages)).messages);
    },
  }),
];
