import { STATUS_CODES } from 'node:http';
import { z } from 'zod';
import { issueSchema, type Problem } from '../../engine/db/problem.ts';
import { type Pagination, paginationSchema } from './pagination.ts';

export const metaSchema = z
  .object({
    timestamp: z.iso.datetime().describe('When the response was made.'),
    requestId: z.string().optional().describe('Identifies the request in the logs of the service.'),
    traceId: z.string().optional().describe('From the `traceparent` header of the request.'),
  })
  .meta({ id: 'Meta' });

/** The success envelope without its `data`. */
export const successEnvelopeSchema = z
  .object({ success: z.literal(true), statusCode: z.int(), message: z.string(), meta: metaSchema })
  .meta({ id: 'SuccessEnvelope', description: 'The envelope of every success response, with its payload in `data`.' });

/** The same of a paginated list. */
export const pageEnvelopeSchema = z
  .object({ ...successEnvelopeSchema.shape, pagination: paginationSchema })
  .meta({ id: 'PageEnvelope', description: 'The envelope of a page of a list, with its items in `data`.' });

export const errorEnvelopeSchema = z
  .object({
    success: z.literal(false),
    statusCode: z.int(),
    message: z.string(),
    error: z.object({
      code: z.string().describe('For programs; the message is for people.'),
      issues: z
        .array(issueSchema.meta({ id: 'Issue' }))
        .optional()
        .describe('What exactly is wrong. A code here refines the code of the error.'),
    }),
    meta: metaSchema,
  })
  .meta({ id: 'ErrorEnvelope', description: 'The envelope of every error response.' });

type Ids = Readonly<{ requestId: string; traceId: string | undefined }>;

function meta(ids: Ids) {
  return {
    timestamp: new Date().toISOString(),
    requestId: ids.requestId,
    ...(ids.traceId ? { traceId: ids.traceId } : {}),
  };
}

/** What a response holds apart from its `meta`; idempotent retries keep it. */
export type ResponseBody = Readonly<{
  message: string;
  data: unknown;
  pagination?: Pagination | undefined;
}>;

export function successEnvelope(statusCode: number, body: ResponseBody, ids: Ids) {
  return {
    success: true as const,
    statusCode,
    message: body.message,
    data: body.data,
    meta: meta(ids),
    ...(body.pagination ? { pagination: body.pagination } : {}),
  };
}

export function errorEnvelope(problem: Problem, ids: Ids) {
  return {
    success: false as const,
    statusCode: problem.status,
    message: problem.message || (STATUS_CODES[problem.status] ?? 'Error'),
    error: { code: problem.code, ...(problem.issues?.length ? { issues: problem.issues } : {}) },
    meta: meta(ids),
  };
}
