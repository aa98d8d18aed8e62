import { readFileSync } from 'node:fs';
import path from 'node:path';
import { z } from 'zod';
import { sizeText } from '../declared_errors.ts';
import { type Endpoint, isStream, type StreamResponse } from '../endpoint.ts';
import { errorEnvelopeSchema } from '../envelope.ts';
import type { StreamBody } from '../stream_body.ts';
import { tags } from '../tags.ts';
import { errorResponses } from './errors.ts';
import { exampleOf } from './example.ts';
import { type JsonSchema, publishedSchema, type SchemaNames, toJsonSchema } from './json_schema.ts';
import { endpointParameters, shareParameters } from './parameters.ts';
import { byteResponses, fileSchema, headResponses, responsesOf, shareExamples, shareResponses } from './responses.ts';
import { commonSecurity, securityOf, securitySchemes } from './security.ts';

export const API_VERSION = '0.1.0';

/** What the document begins with, in Markdown. */
export const overview = readFileSync(path.join(import.meta.dirname, 'overview.md'), 'utf8').trim();

function requestBody(endpoint: Endpoint, components: SchemaNames): JsonSchema {
  if (endpoint.body === undefined) return {};
  if (isStream<StreamBody>(endpoint.body)) {
    const content = Object.fromEntries(endpoint.body.mediaTypes.map((type) => [type, { schema: fileSchema }]));
    const description = `The file itself, at most ${sizeText(endpoint.body.maxBytes)}.`;
    return { requestBody: { required: true, description, content } };
  }
  const schema = toJsonSchema(endpoint.body as z.ZodType, 'input', components);
  const { body, bodies } = endpoint.example ?? {};
  const named = Object.entries(bodies ?? {}).map(([name, value]) => [name, { value }]);
  const shown = bodies ? { examples: Object.fromEntries(named) } : { example: body ?? exampleOf(schema, components) };
  const required = !(endpoint.body as z.ZodType).safeParse({}).success;
  return { requestBody: { required, content: { 'application/json': { schema: publishedSchema(schema), ...shown } } } };
}

function servesRanges(endpoint: Endpoint): boolean {
  return isStream<StreamResponse>(endpoint.response) && endpoint.response.ranges === true;
}

/** The document's operation of an endpoint, and that of HEAD where bytes are served. */
function operationsOf(endpoint: Endpoint, responses: JsonSchema, errors: JsonSchema, components: SchemaNames) {
  const parameters = endpointParameters(endpoint, components);
  const shared = {
    tags: [endpoint.tag],
    ...(endpoint.description ? { description: endpoint.description } : {}),
    ...(endpoint.audience === 'owner' ? {} : { security: securityOf[endpoint.audience] }),
    ...(parameters.length > 0 ? { parameters } : {}),
  };
  const { operationId, summary } = endpoint;
  const own = {
    operationId,
    summary,
    ...shared,
    ...requestBody(endpoint, components),
    responses: { ...responses, ...errors },
  };
  const head = {
    operationId: `${operationId}Head`,
    summary: `${summary} (headers)`,
    ...shared,
    responses: { ...headResponses, ...errors },
  };
  return servesRanges(endpoint) ? { [endpoint.method]: own, head } : { [endpoint.method]: own };
}

function sorted(components: Iterable<readonly [string, JsonSchema]>): Record<string, JsonSchema> {
  return Object.fromEntries([...components].sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** The OpenAPI 3.1 document of all endpoints. */
export function openApi(endpoints: readonly Endpoint[]): JsonSchema {
  const components: SchemaNames = new Map();
  toJsonSchema(z.object({ error: errorEnvelopeSchema }), 'output', components);
  // Responses first: a schema that reads differently as input is the one that gets the longer name.
  const responses = endpoints.map((endpoint) => responsesOf(endpoint, components));
  const errors = errorResponses(endpoints);
  const paths: Record<string, JsonSchema> = {};
  for (const [index, endpoint] of endpoints.entries()) {
    const path = endpoint.path.replaceAll('*}', '}');
    const operations = operationsOf(endpoint, responses[index] ?? {}, errors.of(endpoint), components);
    paths[path] = { ...paths[path], ...operations };
  }
  const described = Object.values(paths).flatMap((methods) => Object.values(methods) as JsonSchema[]);
  const parameters = shareParameters(described);
  const examples = shareExamples(described);
  const shared = shareResponses(described);
  const used = new Set(endpoints.map((endpoint) => endpoint.tag));
  return {
    openapi: '3.1.0',
    info: {
      title: 'Business Runner',
      version: API_VERSION,
      description: overview,
      contact: { name: 'Business Runner' },
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: '/' }],
    security: commonSecurity,
    tags: Object.entries(tags)
      .filter(([name]) => used.has(name as Endpoint['tag']))
      .map(([name, description]) => ({ name, description })),
    paths,
    components: {
      schemas: sorted(
        [...components].map(([name, schema]) => {
          const example = examples.has(name) ? { examples: [examples.get(name)] } : {};
          return [name, { ...publishedSchema(schema), ...example }];
        }),
      ),
      responses: sorted(
        Object.entries({ ...(endpoints.some(servesRanges) ? byteResponses : {}), ...shared, ...errors.responses }),
      ),
      parameters: sorted(Object.entries(parameters)),
      examples: sorted(Object.entries(errors.examples)),
      securitySchemes,
    },
  };
}
