import { z } from 'zod';
import { storedUuid, uuid } from '../fields/ids.ts';

const base = { id: z.string().describe('Unique in the message.') };
const question = {
  question: z.string(),
  options: z.array(z.string()).describe('Answers to choose from. Empty: any text answers the question.'),
  allowMultiple: z.boolean().describe('True: several options may be chosen.'),
  allowFreeText: z.boolean().describe('True: a text other than the options is possible too.'),
};
const reference = {
  messageId: storedUuid.describe('The message that asked.'),
  partId: z.string().describe('The part of it that asked.'),
};
const values = z.union([z.string(), z.array(z.string())]);
const NOTE_STATUSES = ['pending', 'approved', 'rejected', 'informational'] as const;
const noteStatus = z
  .enum(NOTE_STATUSES)
  .meta({ id: 'NoteStatus', description: '`pending`: the next message of the user decides.' });

/** Parts as they are kept and shown. */
export const partSchema = z
  .discriminatedUnion('kind', [
    z.object({ ...base, kind: z.literal('text'), text: z.string() }),
    z.object({ ...base, kind: z.literal('question'), ...question }),
    z
      .object({
        ...base,
        kind: z.literal('answer'),
        ...reference,
        value: values.optional(),
        approved: z.boolean().optional().describe('For a context note or an approval, instead of a value.'),
      })
      .describe('The answer to a part of an assistant message.'),
    z.object({ ...base, kind: z.literal('deferral'), ...reference }).describe('The user skipped a question.'),
    z
      .object({ ...base, kind: z.literal('context_note'), text: z.string(), status: noteStatus })
      .describe('Something that the assistant proposes to remember about the organization.'),
    z
      .object({ ...base, kind: z.literal('approval'), text: z.string(), status: noteStatus })
      .describe('Something that the assistant asks approval for.'),
    z
      .object({ ...base, kind: z.literal('task'), taskId: storedUuid, title: z.string().optional() })
      .describe('A task that was created in the turn.'),
    z
      .object({ ...base, kind: z.literal('action'), actionId: storedUuid, summary: z.string() })
      .describe('An action that the turn proposed. It tells what becomes of it: `getAction`.'),
    z
      .object({
        ...base,
        kind: z.literal('attachment'),
        attachmentId: storedUuid,
        fileName: z.string(),
        mediaType: z.string(),
        sizeBytes: z.int(),
      })
      .describe('An attachment of the chat.'),
  ])
  .meta({ id: 'MessagePart' });

export const TEXT_MAX = 100_000;
/** What appending can make of a text, it may be rewritten to: only the message as a whole is bounded. */
const WRITTEN_TEXT_MAX = 1_048_576;
const PARTS_MAX = 200;
const text = (maximum: number) => z.string().min(1).max(maximum);
const partId = text(100).meta({
  id: 'PartId',
  description: 'Identifies the part across revisions. Default: the id of the part at the same position.',
});
const written = { id: partId.optional() };

/** Parts that a runtime writes. */
const writtenPart = z.discriminatedUnion('kind', [
  z.strictObject({ ...written, kind: z.literal('text'), text: z.string().max(WRITTEN_TEXT_MAX) }),
  z.strictObject({
    ...written,
    kind: z.literal('question'),
    question: text(10_000),
    options: z
      .array(text(500))
      .max(50)
      .default([])
      .describe('Answers to choose from. Empty: any text answers the question.'),
    allowMultiple: z.boolean().default(false),
    allowFreeText: z.boolean().default(false),
  }),
  z.strictObject({
    ...written,
    kind: z.literal('context_note'),
    text: text(TEXT_MAX),
    status: noteStatus.default('pending'),
  }),
  z.strictObject({
    ...written,
    kind: z.literal('approval'),
    text: text(10_000),
    status: noteStatus.default('pending'),
  }),
  z.strictObject({ ...written, kind: z.literal('task'), taskId: uuid, title: text(200).optional() }),
  z.strictObject({
    ...written,
    kind: z.literal('action'),
    actionId: uuid.describe('One that the turn has proposed. Those that are left out are added at its end.'),
    summary: z.string().max(2000).optional().describe('That of the action stands, whatever is given.'),
  }),
]);

export const writtenParts = z.array(writtenPart.meta({ id: 'WrittenPart' })).max(PARTS_MAX);
