import { z } from 'zod';

const option = z.string().trim().min(1).max(500);

/** Body of an agent's item. */
export const newInboxItemSchema = z
  .strictObject({
    kind: z.enum(['question', 'notification']),
    title: z.string().trim().min(1).max(500),
    body: z.string().max(20_000).optional(),
    options: z
      .array(option)
      .max(50)
      .refine((options) => new Set(options).size === options.length, 'must differ from each other')
      .optional()
      .describe('Answers to choose from. For questions only.'),
    allowFreeText: z
      .boolean()
      .optional()
      .describe('Default true: the options are suggestions. False: the answer is one of the options.'),
    blocking: z
      .boolean()
      .optional()
      .describe(
        'Default false. True: the task waits for the answer; if it is running, as soon as the run ends. For questions only.',
      ),
  })
  .refine((item) => item.kind === 'question' || !item.blocking, {
    path: ['blocking'],
    message: 'only questions block',
  })
  .refine((item) => item.kind === 'question' || !item.options?.length, {
    path: ['options'],
    message: 'only questions have options',
  })
  .refine((item) => item.allowFreeText !== false || (item.options?.length ?? 0) > 0, {
    path: ['allowFreeText'],
    message: 'without free text there have to be options',
  })
  .meta({ id: 'NewHumanInboxItem' });

/** Body of a response. */
export const responseSchema = z
  .strictObject({
    response: z
      .string()
      .trim()
      .min(1)
      .max(20_000)
      .describe(
        'With purpose `repair`: `try_again`, `accept` or `cancel`. With `budget`: `raise` or `cancel`. With `prerequisite`: `retry`, `remove` (the dependency), `wait` or `cancel`. For questions of agents any text, or one of the options if `allowFreeText` is false.',
      ),
    note: z.string().trim().min(1).max(20_000).optional().describe('A note for the next run.'),
  })
  .meta({ id: 'HumanInboxResponse' });
