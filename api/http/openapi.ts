import { STATUS_CODES } from 'node:http';
import { z } from 'zod';
import { SESSION_COOKIE } from './auth/admin_session.ts';
import type { Audience } from './caller.ts';
import { declaredErrors, takesIdempotencyKey } from './declared_errors.ts';
import { type DeclaredError, type Endpoint, isStream, type JsonAnswer, type StreamAnswer } from './endpoint.ts';
import { errorEnvelopeSchema } from './envelope.ts';
import { exampleOf } from './example.ts';
import { type JsonSchema, type SchemaNames, toJsonSchema } from './json_schema.ts';
import { successSchema } from './response_check.ts';
import type { StreamBody } from './stream_body.ts';
import { tags } from './tags.ts';

export const API_VERSION = '0.1.0';

const securitySchemes = {
  ownerToken: {
    type: 'http',
    scheme: 'bearer',
    description:
      'Owners: an operator token (OWNER_AUTH=token) or a JWT (OWNER_AUTH=jwt). With OWNER_AUTH=open, which is only possible on a loopback address, none is needed.',
  },
  agentServiceToken: { type: 'http', scheme: 'bearer', description: 'Trusted agent runtimes and workers.' },
  agentExecutionCapability: {
    type: 'http',
    scheme: 'bearer',
    description: 'The `executionToken` of a run: one organization, one profile, one run; it ends with the lease.',
  },
  adminToken: { type: 'http', scheme: 'bearer', description: 'Administrators: a token of ADMIN_TOKENS.' },
  adminSession: {
    type: 'apiKey',
    in: 'cookie',
    name: SESSION_COOKIE,
    description:
      'Administrators: the session of the explorer, which its sign-in sets; only requests of its own page are let in by it.',
  },
} as const;

const securityOf: Record<Audience, readonly Record<string, readonly never[]>[]> = {
  owner: [{ ownerToken: [] }, {}],
  agent: [{ agentServiceToken: [] }, { agentExecutionCapability: [] }],
  worker: [{ agentServiceToken: [] }],
  admin: [{ adminToken: [] }, { adminSession: [] }],
  public: [],
};

function parameters(schema: z.ZodObject, place: 'path' | 'query' | 'header', components: SchemaNames): JsonSchema[] {
  const whole = toJsonSchema(schema, 'input', components) as {
    properties?: Record<string, JsonSchema>;
    required?: string[];
  };
  return Object.entries(whole.properties ?? {}).map(([name, property]) => {
    const { description, ...rest } = property;
    return {
      name: place === 'header' ? headerName(name) : name,
      in: place,
      required: place === 'path' || (whole.required ?? []).includes(name),
      ...(description ? { description } : {}),
      schema: rest,
    };
  });
}

function headerName(name: string): string {
  return name.replace(/(^|-)[a-z]/g, (letter) => letter.toUpperCase());
}

const idempotencyHeader = {
  name: 'Idempotency-Key',
  in: 'header',
  required: false,
  description: 'The first success under a key is kept for 24 hours and answered again to the same caller and path.',
  schema: { type: 'string', minLength: 1, maxLength: 200 },
};

function requestBody(endpoint: Endpoint, components: SchemaNames): JsonSchema {
  if (endpoint.body === undefined) return {};
  if (isStream<StreamBody>(endpoint.body)) {
    const content = Object.fromEntries(
      endpoint.body.mediaTypes.map((type) => [type, { schema: { type: 'string', contentMediaType: type } }]),
    );
    return {
      requestBody: { required: true, description: `At most ${endpoint.body.maxBytes} bytes, streamed.`, content },
    };
  }
  const schema = toJsonSchema(endpoint.body as z.ZodType, 'input', components);
  const media = { schema, example: endpoint.example?.body ?? exampleOf(schema, components) };
  const required = !(endpoint.body as z.ZodType).safeParse({}).success;
  return { requestBody: { required, content: { 'application/json': media } } };
}

function success(endpoint: Endpoint, components: SchemaNames): JsonSchema {
  if (isStream<StreamAnswer>(endpoint.response)) return streamed(endpoint.response);
  const answer = endpoint.response as JsonAnswer;
  const status = answer.status ?? 200;
  const message = answer.message ?? STATUS_CODES[status] ?? 'OK';
  const schema = toJsonSchema(successSchema(answer), 'output', components);
  const { data: shape } = schema['properties'] as { data: JsonSchema };
  const data = endpoint.example?.data ?? exampleOf(shape, components);
  const example = { success: true, statusCode: status, message, data, meta, ...(answer.list ? { pagination } : {}) };
  return {
    [status]: {
      description: answer.description ?? message,
      content: { 'application/json': { schema, example } },
    },
  };
}

const meta = { timestamp: '2026-01-31T09:30:00.000Z', requestId: '6a1f0c9e-5b1b-4d0c-9a53-0f3c4f1f7a11' };
const pagination = {
  cursor: null,
  limit: 50,
  nextCursor: null,
  previousCursor: null,
  hasNextPage: false,
  hasPreviousPage: false,
};

function streamed(answer: StreamAnswer): JsonSchema {
  const content = { [answer.mediaType]: { schema: { type: 'string', contentMediaType: answer.mediaType } } };
  const whole = { 200: { description: answer.description, content } };
  if (!answer.ranges) return whole;
  return {
    ...whole,
    206: { description: 'The range that was asked for.', content },
    304: { description: 'Not modified: the `If-None-Match` still holds.' },
  };
}

function failures(endpoint: Endpoint): JsonSchema {
  const byStatus = Map.groupBy(declaredErrors(endpoint), (error) => error.status);
  return Object.fromEntries(
    [...byStatus].map(([status, errors]) => [
      status,
      {
        description: errors.map((error) => `\`${error.code}\`: ${error.when}`).join('; '),
        content: { 'application/json': { schema: errorRef, examples: errorExamples(errors) } },
      },
    ]),
  );
}

const errorRef = { $ref: '#/components/schemas/ErrorEnvelope' };

function errorExamples(errors: readonly DeclaredError[]): JsonSchema {
  return Object.fromEntries(
    errors.map(({ status, code, when }) => [
      code,
      {
        summary: when,
        value: {
          success: false,
          statusCode: status,
          message: STATUS_CODES[status] ?? 'Error',
          error: { code },
          meta,
        },
      },
    ]),
  );
}

function operation(endpoint: Endpoint, answer: JsonSchema, components: SchemaNames): JsonSchema {
  const own = [
    ...parameters(endpoint.params, 'path', components),
    ...parameters(endpoint.query, 'query', components),
    ...parameters(endpoint.headers, 'header', components),
    ...(takesIdempotencyKey(endpoint) ? [idempotencyHeader] : []),
  ];
  return {
    operationId: endpoint.operationId,
    tags: [endpoint.tag],
    summary: endpoint.summary,
    ...(endpoint.description ? { description: endpoint.description } : {}),
    security: securityOf[endpoint.audience],
    ...(own.length > 0 ? { parameters: own } : {}),
    ...requestBody(endpoint, components),
    responses: { ...answer, ...failures(endpoint) },
  };
}

/** The OpenAPI 3.1 document of all endpoints. */
export function openApi(endpoints: readonly Endpoint[]): JsonSchema {
  const components: SchemaNames = new Map();
  toJsonSchema(z.object({ error: errorEnvelopeSchema }), 'output', components);
  // Answers first: a schema that reads differently as input is the one that gets the longer name.
  const answers = endpoints.map((endpoint) => success(endpoint, components));
  const paths: Record<string, JsonSchema> = {};
  for (const [index, endpoint] of endpoints.entries()) {
    const path = endpoint.path.replaceAll('*}', '}');
    const described = operation(endpoint, answers[index] ?? {}, components);
    paths[path] = { ...paths[path], [endpoint.method]: described };
    if (endpoint.method === 'get' && isStream<StreamAnswer>(endpoint.response) && endpoint.response.ranges) {
      const head = {
        ...described,
        operationId: `${endpoint.operationId}Head`,
        summary: `${endpoint.summary} (headers)`,
      };
      paths[path] = { ...paths[path], head };
    }
  }
  const used = new Set(endpoints.map((endpoint) => endpoint.tag));
  return {
    openapi: '3.1.0',
    info: {
      title: 'Business Runner',
      version: API_VERSION,
      description: 'Control plane on which organizations delegate business work to AI agents.',
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: '/' }],
    tags: Object.entries(tags)
      .filter(([name]) => used.has(name as Endpoint['tag']))
      .map(([name, description]) => ({ name, description })),
    paths,
    components: { schemas: Object.fromEntries([...components].sort(([a], [b]) => (a < b ? -1 : 1))), securitySchemes },
  };
}
