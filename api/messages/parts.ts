import { z } from 'zod';
import { uuid } from '../fields/ids.ts';

const base = { id: z.string().describe('Names the part inside its message.') };
const question = {
  question: z.string(),
  options: z.array(z.string()),
  allowMultiple: z.boolean(),
  allowFreeText: z.boolean(),
};
const reference = { messageId: z.string(), partId: z.string() };
const values = z.union([z.string(), z.array(z.string())]);
const NOTE_STATUSES = ['pending', 'approved', 'rejected', 'informational'] as const;
const noteStatus = z.enum(NOTE_STATUSES).describe('pending: the next message of the user has to decide it.');

/** Parts as they are kept and shown (decisions 6). */
export const partSchema = z
  .discriminatedUnion('kind', [
    z.object({ ...base, kind: z.literal('text'), text: z.string() }),
    z.object({ ...base, kind: z.literal('question'), ...question }),
    z.object({
      ...base,
      kind: z.literal('answer'),
      ...reference,
      value: values.optional(),
      approved: z.boolean().optional().describe('Of a note or an approval, which has no value.'),
    }),
    z.object({ ...base, kind: z.literal('deferral'), ...reference }),
    z.object({ ...base, kind: z.literal('context_note'), text: z.string(), status: noteStatus }),
    z.object({ ...base, kind: z.literal('approval'), text: z.string(), status: noteStatus }),
    z.object({ ...base, kind: z.literal('task'), taskId: z.string(), title: z.string().optional() }),
    z.object({
      ...base,
      kind: z.literal('attachment'),
      attachmentId: z.string(),
      fileName: z.string(),
      mediaType: z.string(),
      sizeBytes: z.int(),
    }),
  ])
  .meta({ id: 'MessagePart' });

export const TEXT_MAX = 100_000;
/** What appending can make of a text, it may be rewritten to: only the message as a whole is bounded. */
const WRITTEN_TEXT_MAX = 1_048_576;
const PARTS_MAX = 200;
const text = (maximum: number) => z.string().min(1).max(maximum);
const partId = text(100).describe('Names the part from revision to revision. Default: that of the part in its place.');
const written = { id: partId.optional() };

/** Parts that a runtime writes. */
const writtenPart = z.discriminatedUnion('kind', [
  z.strictObject({ ...written, kind: z.literal('text'), text: z.string().max(WRITTEN_TEXT_MAX) }),
  z.strictObject({
    ...written,
    kind: z.literal('question'),
    question: text(10_000),
    options: z.array(text(500)).max(50).default([]).describe('None: any text answers it.'),
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
]);

export const writtenParts = z.array(writtenPart.meta({ id: 'WrittenPart' })).max(PARTS_MAX);
