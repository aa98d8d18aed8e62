import t from 'tap';
import { z } from 'zod';
import { issueText } from '../../engine/issue_text.ts';

const said = (schema: z.ZodType, value: unknown) =>
  schema.safeParse(value, { error: issueText }).error?.issues.map(({ message }) => message);

t.test('what is wrong is said in words of our own', async (t) => {
  const kinds = z.discriminatedUnion('kind', [
    z.strictObject({ kind: z.literal('waiting'), until: z.iso.datetime() }),
    z.strictObject({ kind: z.literal('failed'), message: z.string() }),
  ]);
  for (const [schema, value, message] of [
    [z.object({ name: z.string() }), {}, 'is required'],
    [z.object({ status: z.enum(['open', 'over']) }), {}, 'is required'],
    [z.strictObject({}), { nmae: 1 }, 'is not a known field'],
    [z.string(), 1, 'must be a string'],
    [z.string(), null, 'must be a string'],
    [z.int(), 1.5, 'must be a whole number'],
    [z.number(), '1', 'must be a number'],
    [z.boolean(), 'yes', 'must be true or false'],
    [z.array(z.string()), {}, 'must be an array'],
    [z.record(z.string(), z.string()), [], 'must be an object'],
    [z.enum(['open', 'over']), 'ended', 'must be one of open, over'],
    [z.literal('open'), 'ended', 'must be open'],
    [kinds, { kind: 'ended' }, 'must be one of waiting, failed'],
    [kinds, {}, 'is required'],
    [kinds, 'ended', 'must be an object'],
    [z.string().min(1), '', 'must not be empty'],
    [z.array(z.string()).min(1), [], 'must not be empty'],
    [z.string().min(2), 'x', 'must have at least 2 characters'],
    [z.array(z.string()).max(1), ['a', 'b'], 'must have at most 1 item'],
    [z.string().length(2), 'x', 'must have exactly 2 characters'],
    [z.int().min(1), 0, 'must be at least 1'],
    [z.int().max(9), 10, 'must be at most 9'],
    [z.number().gt(1), 1, 'must be greater than 1'],
    [z.number().lt(1), 1, 'must be less than 1'],
    [z.number().multipleOf(5), 1, 'must be a multiple of 5'],
    [z.uuid(), 'x', 'must be a UUID'],
    [z.url(), 'x', 'must be a URL'],
    [z.iso.datetime(), 'x', 'must be an instant such as 2030-01-31T12:00:00Z'],
    [z.string().regex(/^a/, 'must begin with a'), 'x', 'must begin with a'],
  ] as const) {
    t.same(said(schema, value), [message], message);
  }
});
