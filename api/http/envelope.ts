import { STATUS_CODES } from 'node:http';
import { z } from 'zod';
import { issueSchema, type Problem } from '../../engine/db/problem.ts';
import { ids as exampleIds, times } from './openapi/example_values.ts';
import { type Pagination, paginationSchema } from './pagination.ts';

/** Examples that the document builds those of responses from. */
export const metaExample = { timestamp: times.finished, requestId: exampleIds.request };

export const metaSchema = z
  .object({
    timestamp: z.iso.datetime().describe('When the response was made.'),
    requestId: z.string().optional().describe('Identifies the request in the logs of the service.'),
    traceId: z.string().optional().describe('From the `traceparent` header of the request.'),
  })
  .meta({ id: 'Meta', examples: [metaExample] });

const success = (statusCode: number) => ({
  success: z.literal(true),
  statusCode: z.literal(statusCode),
  message: z.string().meta({ examples: [STATUS_CODES[statusCode]] }),
  meta: metaSchema,
});

/** The success envelopes by status, without their `data`. */
const successEnvelopeSchemas = {
  200: z
    .object(success(200))
    .meta({ id: 'SuccessEnvelope', description: 'The envelope of a success response, with its payload in `data`.' }),
  201: z
    .object(success(201))
    .meta({ id: 'CreatedEnvelope', description: 'The same of a response with status 201, with what was created.' }),
  202: z
    .object(success(202))
    .meta({ id: 'AcceptedEnvelope', description: 'The same of a response with status 202: the work goes on.' }),
} as const;

/** The same of a paginated list. */
const pageEnvelopeSchema = z
  .object({ ...success(200), pagination: paginationSchema })
  .meta({ id: 'PageEnvelope', description: 'The envelope of a page of a list, with its items in `data`.' });

export type SuccessStatus = keyof typeof successEnvelopeSchemas;

/** The envelope of a response without its `data`. */
export function envelopeSchema({ status = 200, list }: Readonly<{ status?: SuccessStatus; list?: boolean }>) {
  return list ? pageEnvelopeSchema : successEnvelopeSchemas[status];
}

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
