import { z } from 'zod';

const partSchema = z.looseObject({ type: z.string(), text: z.string().optional() });

/** The text in `content` of chat completions. Some endpoints send parts; only those of type `text` are for the reader. */
export const modelContentSchema = z.union([
  z.string(),
  z
    .array(partSchema)
    .transform((parts) => parts.map(({ type, text }) => (type === 'text' ? (text ?? '') : '')).join('')),
]);
