import { z } from 'zod';
import { FILE_PATH_RULE, isFilePath } from '../file_paths.ts';
import { issueText } from '../issue_text.ts';
import { mapping } from '../mapping.ts';
import { JSON_POINTER } from './json_pointer.ts';

export const OPERATORS = ['eq', 'ne', 'gt', 'gte', 'lt', 'lte', 'exists', 'contains'] as const;
export type Operator = (typeof OPERATORS)[number];

const MAX_VALUE_CHARACTERS = 10_000;
const MAX_VALUE_DEPTH = 32;

/** Why a value cannot stand on the right side of a comparison, or null. */
function valueProblem(value: unknown, depth = 0): string | null {
  if (depth > MAX_VALUE_DEPTH) return `is nested deeper than ${MAX_VALUE_DEPTH} levels`;
  if (typeof value === 'number' && Number.isInteger(value) && !Number.isSafeInteger(value)) {
    // It may have been rounded on its way here: comparing with it could accept a neighbour.
    return 'holds an integer beyond 2^53, which a JSON body does not carry exactly: compare strings instead';
  }
  if (typeof value !== 'object' || value === null) return null;
  for (const item of Object.values(value)) {
    const problem = valueProblem(item, depth + 1);
    if (problem !== null) return problem;
  }
  return null;
}

function sizeProblem(value: unknown): string | null {
  return JSON.stringify(value ?? null).length > MAX_VALUE_CHARACTERS ? 'is too long' : null;
}

/** Why `value` does not fit its operator, or null. */
function operandProblem(operator: Operator, value: unknown): string | null {
  if (operator === 'exists') {
    return value === undefined || typeof value === 'boolean' ? null : 'must be true or false for exists';
  }
  if (value === undefined) return `is required by ${operator}`;
  const ordered = operator !== 'eq' && operator !== 'ne' && operator !== 'contains';
  if (ordered && typeof value !== 'number' && typeof value !== 'string') {
    return `must be a number or a string for ${operator}`;
  }
  return valueProblem(value) ?? sizeProblem(value);
}

const mediaTypeCheckSchema = z.strictObject({
  kind: z.literal('media_type'),
  anyOf: z
    .array(
      z
        .string()
        .max(200)
        .regex(/^[\w.+-]+\/(?:[\w.+-]+|\*)$/, 'must be a media type such as text/csv or image/*'),
    )
    .min(1)
    .max(20),
});

const jsonPointerCheckSchema = z
  .strictObject({
    kind: z.literal('json_pointer'),
    pointer: z.string().max(1000).regex(JSON_POINTER, 'must be a JSON pointer (RFC 6901): empty or /a/b/0'),
    operator: z.enum(OPERATORS),
    // Not z.json(): that would recurse as deep as the body goes before anything here could refuse it.
    value: z.unknown().optional(),
  })
  .check((context) => {
    const { operator, value } = context.value;
    const message = operandProblem(operator, value);
    if (message !== null) context.issues.push({ code: 'custom', path: ['value'], message, input: value });
  });

const outputCheckSchema = z.discriminatedUnion('kind', [mediaTypeCheckSchema, jsonPointerCheckSchema]);

/** A criterion that the backend evaluates on the stored bytes: the file is there, and each check holds. */
export const outputFileCriterionSchema = z.strictObject({
  kind: z.literal('output_file'),
  path: z.string().min(1).max(1000).refine(isFilePath, FILE_PATH_RULE),
  checks: z.array(outputCheckSchema).max(50).default([]),
});

export type OutputFileCriterion = z.output<typeof outputFileCriterionSchema>;
export type OutputCheck = z.output<typeof outputCheckSchema>;
export type JsonPointerCheck = z.output<typeof jsonPointerCheckSchema>;

/**
 * An item of `spec.acceptanceCriteria` (docs/interface.md 2.9.5). `output_file` is checked strictly; any other kind is kept as it is
 * and shown to people, and decides nothing.
 */
export const acceptanceCriterionSchema = z
  .looseObject({ kind: z.string().min(1).max(100) })
  .check((context) => {
    if (context.value.kind !== 'output_file') return;
    const result = outputFileCriterionSchema.safeParse(context.value, { error: issueText });
    for (const issue of result.error?.issues ?? []) context.issues.push({ ...issue, input: context.value } as never);
  })
  // Its checks are a list wherever it is read, also where it was sent without any.
  .pipe(mapping((given) => (given.kind === 'output_file' ? { ...given, checks: given['checks'] ?? [] } : given)))
  .meta({
    id: 'AcceptanceCriterion',
    description:
      'With kind `output_file`, the backend checks the stored file at `path`. Each item of `checks` is `{kind: media_type, anyOf: [text/csv, image/*, …]}` or `{kind: json_pointer, pointer, operator, value}`: a pointer of RFC 6901, and one of the operators eq, ne, gt, gte, lt, lte, exists, contains. Numbers are compared exactly. A criterion of any other kind is for people to read and has no effect.',
    examples: [
      {
        kind: 'output_file',
        path: 'report.json',
        checks: [
          { kind: 'media_type', anyOf: ['application/json'] },
          { kind: 'json_pointer', pointer: '/totals/orders', operator: 'eq', value: 800 },
        ],
      },
    ],
  });
