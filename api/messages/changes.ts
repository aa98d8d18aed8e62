import { z } from 'zod';
import { uuid } from '../fields/ids.ts';
import { unique } from '../organizations/changes.ts';
import { TEXT_MAX } from './parts.ts';
import { messageSchema } from './schema.ts';

const text = (maximum: number) => z.string().min(1).max(maximum);
const target = {
  messageId: uuid.describe('The assistant message that asks, the last one of the chat.'),
  partId: text(100).describe('The part of it that asks.'),
};

const answerSchema = z.union([
  z.strictObject({
    ...target,
    value: z
      .union([text(10_000), z.array(text(10_000)).min(1).max(50)])
      .describe('For a question: an option; several if it allows that; or a free text if it allows that.'),
  }),
  z.strictObject({ ...target, deferred: z.literal(true).describe('Skips a question. This never counts as approval.') }),
  z.strictObject({ ...target, approved: z.boolean().describe('For a context note or an approval: the decision.') }),
]);

/** Body of a user message. */
export const newMessageSchema = z
  .strictObject({
    author: z
      .strictObject({ kind: text(50), displayName: text(200).optional() })
      .optional()
      .describe('Who writes, as shown to others.'),
    parts: z
      .array(z.strictObject({ kind: z.literal('text'), text: text(TEXT_MAX) }))
      .max(50)
      .optional()
      .describe('At least one part or answer is required.'),
    answers: z
      .array(answerSchema)
      .max(200)
      .optional()
      .describe('Exactly one for each part of the last assistant message that asks, in their order.'),
    attachmentIds: unique(uuid, 50).optional().describe('Attachments of the chat that were uploaded before.'),
  })
  .refine(({ parts = [], answers = [] }) => parts.length + answers.length > 0, {
    path: ['parts'],
    message: 'needs at least one part or answer',
  })
  .meta({ id: 'NewMessage' });

/** The user message as it is stored, and its reply, which is pending. */
export const postedSchema = z
  .object({ userMessage: messageSchema, assistantMessage: messageSchema })
  .meta({ id: 'PostedMessage' });

/** What a message decides of notes and approvals, for the audit log; undefined: nothing, and words are no decision. */
export function approvalsIn(body: z.output<typeof newMessageSchema>, { chatId }: Readonly<{ chatId: string }>) {
  const approvals = (body.answers ?? []).filter((answer) => 'approved' in answer);
  return approvals.length > 0 ? { chatId, approvals } : undefined;
}
