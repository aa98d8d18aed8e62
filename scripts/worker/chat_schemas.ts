import { z } from 'zod';

/** What a pull says of a chat whose message waits for a reply. */
export const chatTurnSchema = z.looseObject({
  chatId: z.string(),
  messageId: z.string(),
  title: z.string(),
  summary: z.string().nullish(),
  harnessSessionId: z.string().nullish(),
});

const values = z.union([z.string(), z.array(z.string())]);

/** A part of a message: `kind` says which of the others are there. Kinds that come later are passed over. */
export const partSchema = z.looseObject({
  id: z.string(),
  kind: z.string(),
  text: z.string().optional(),
  question: z.string().optional(),
  options: z.array(z.string()).optional(),
  messageId: z.string().optional(),
  partId: z.string().optional(),
  value: values.optional(),
  approved: z.boolean().optional(),
  title: z.string().optional(),
  summary: z.string().optional(),
  attachmentId: z.string().optional(),
  fileName: z.string().optional(),
  mediaType: z.string().optional(),
  sizeBytes: z.number().optional(),
});
export type Part = z.output<typeof partSchema>;

const messageSchema = z.looseObject({
  id: z.string(),
  role: z.string(),
  status: z.string(),
  parts: z.array(partSchema),
});
export type ConversationMessage = z.output<typeof messageSchema>;

export const conversationSchema = z.looseObject({
  chat: z.looseObject({ id: z.string(), title: z.string(), summary: z.string().nullish() }),
  messageId: z.string(),
  userMessageId: z.string(),
  messages: z.array(messageSchema),
  earlier: z.boolean(),
});
/** The messages up to the one that is replied to, oldest first; `earlier`: there are more before them. */
export type Conversation = z.output<typeof conversationSchema>;

export const writtenSchema = z.looseObject({ revision: z.int(), status: z.string() });
export type Written = z.output<typeof writtenSchema>;
