import { STATUS_CODES } from 'node:http';
import { type Endpoint, isStream, type JsonResponse, type StreamResponse } from '../endpoint.ts';
import { envelopeSchema, metaExample } from '../envelope.ts';
import { paginationExample } from '../pagination.ts';
import { completedExample } from './example.ts';
import {
  isObject,
  type JsonSchema,
  publishedSchema,
  referencedName,
  type SchemaNames,
  toJsonSchema,
} from './json_schema.ts';
import { pascalCase } from './names.ts';

function jsonResponse(endpoint: Endpoint, response: JsonResponse, components: SchemaNames): JsonSchema {
  const status = response.status ?? 200;
  const message = response.message ?? STATUS_CODES[status] ?? 'OK';
  const shape = toJsonSchema(response.data, 'output', components);
  const data = completedExample(shape, components, endpoint.example?.data);
  const envelope = toJsonSchema(envelopeSchema(response), 'output', components);
  const schema = {
    allOf: [envelope, { type: 'object', properties: { data: publishedSchema(shape) }, required: ['data'] }],
  };
  const page = response.list ? { pagination: paginationExample } : {};
  const example = { success: true, statusCode: status, message, data, meta: metaExample, ...page };
  const content = { 'application/json': { schema, example } };
  return { [status]: { description: response.description ?? message, content } };
}

/** OpenAPI 3.1 has no word for bytes; generators still read the one of 3.0. */
export const fileSchema = { type: 'string', format: 'binary' };

const responseRef = (name: string) => ({ $ref: `#/components/responses/${name}` });

const header = (description: string, example: string) => ({ description, schema: { type: 'string' }, example });
const byteHeaders = {
  ETag: header(
    'The SHA-256 of the file, in quotes.',
    '"845e91831319e89c4d656bdb80c278ac09a7230d61e5dfd2e1b1fbb436ac8917"',
  ),
  'Accept-Ranges': header('Byte ranges are served.', 'bytes'),
  'X-Media-Type': header('The media type of the file.', 'application/json'),
  'Content-Disposition': header('The file name.', 'attachment; filename="report.json"'),
};
const bytes = {
  'application/octet-stream': { schema: fileSchema },
};

/** What downloads of stored bytes return. */
export const byteResponses: Readonly<Record<string, JsonSchema>> = {
  FileBytes: {
    description: 'The bytes of the file. `X-Media-Type` is its media type.',
    headers: byteHeaders,
    content: bytes,
  },
  FilePart: {
    description: 'The byte range that was asked for.',
    headers: { ...byteHeaders, 'Content-Range': header('Which bytes these are.', 'bytes 0-1023/2481') },
    content: bytes,
  },
  FileHeaders: { description: 'The headers of the file, without its bytes.', headers: byteHeaders },
  FileUnchanged: { description: 'The file still has the `ETag` of `If-None-Match`.' },
};

function streamResponse(endpoint: Endpoint, response: StreamResponse, components: SchemaNames): JsonSchema {
  const { mediaType, description } = response;
  if (response.ranges) {
    return {
      200: responseRef('FileBytes'),
      206: responseRef('FilePart'),
      304: responseRef('FileUnchanged'),
    };
  }
  if (!response.schema) {
    const schema = mediaType.startsWith('text/') ? { type: 'string' } : fileSchema;
    const example = endpoint.example?.data;
    return { 200: { description, content: { [mediaType]: { schema, ...(example ? { example } : {}) } } } };
  }
  const shape = toJsonSchema(response.schema, 'output', components);
  const example = completedExample(shape, components, endpoint.example?.data);
  return { 200: { description, content: { [mediaType]: { schema: publishedSchema(shape), example } } } };
}

/** The success responses of an endpoint, by status. */
export function responsesOf(endpoint: Endpoint, components: SchemaNames): JsonSchema {
  if (isStream<StreamResponse>(endpoint.response)) return streamResponse(endpoint, endpoint.response, components);
  return jsonResponse(endpoint, endpoint.response as JsonResponse, components);
}

/** The same for HEAD. */
export const headResponses: JsonSchema = { 200: responseRef('FileHeaders'), 304: responseRef('FileUnchanged') };

type Media = JsonSchema & { example?: { statusCode: number; message: string; data: unknown } };

function jsonOf(response: JsonSchema): Media | undefined {
  return (response['content'] as Record<string, Media> | undefined)?.['application/json'];
}

/** The named schema of a response's data or, of a list, of its items; undefined where it has none. */
function dataSchema(response: JsonSchema): Readonly<{ name: string; list: boolean }> | undefined {
  const [, own] = ((jsonOf(response)?.['schema'] as JsonSchema | undefined)?.['allOf'] ?? []) as readonly JsonSchema[];
  const { data } = (own?.['properties'] ?? {}) as { data?: JsonSchema };
  if (!data) return undefined;
  const list = isObject(data['items']);
  const name = referencedName(list ? (data['items'] as JsonSchema) : data);
  return name === undefined ? undefined : { name, list };
}

/** `Task` and `TaskList`, after what a response holds. */
function dataName(response: JsonSchema): string | undefined {
  const data = dataSchema(response);
  return data && (data.list ? `${data.name}List` : data.name);
}

function own(operation: JsonSchema): JsonSchema[] {
  return Object.values(operation['responses'] as Record<string, JsonSchema>).filter((one) => !('$ref' in one));
}

/**
 * Moves the example that most responses have of a schema into that schema, in place: readers build theirs from it. A
 * response keeps its own example where it says something else: another message, other data, several items.
 * @returns the examples of schemas by name
 */
export function shareExamples(operations: readonly JsonSchema[]): ReadonlyMap<string, unknown> {
  const uses = operations.flatMap(own).flatMap((response) => {
    const media = jsonOf(response);
    const schema = dataSchema(response);
    if (!media?.example || !schema) return [];
    const { statusCode, message, data } = media.example;
    if (message !== STATUS_CODES[statusCode]) return [];
    const items = schema.list ? (data as readonly unknown[]) : [data];
    return items.length === 1 ? [{ media, name: schema.name, value: items[0], text: JSON.stringify(items[0]) }] : [];
  });
  const shared = new Map<string, unknown>();
  for (const [name, ofSchema] of Map.groupBy(uses, (use) => use.name)) {
    const byText = [...Map.groupBy(ofSchema, ({ text }) => text).values()];
    const [most = []] = byText.sort((a, b) => b.length - a.length);
    for (const { media } of most) delete media.example;
    shared.set(name, most[0]?.value);
  }
  return shared;
}

/**
 * Replaces success responses that several operations have by references, in place.
 * @returns them as `components.responses`, named after their data or else after the first operation that has them
 */
export function shareResponses(operations: readonly JsonSchema[]): Record<string, JsonSchema> {
  const uses = operations.flatMap((operation) => {
    const responses = operation['responses'] as Record<string, JsonSchema>;
    return Object.entries(responses).flatMap(([status, response]) =>
      '$ref' in response ? [] : [{ operation, responses, status, response }],
    );
  });
  const shared: Record<string, JsonSchema> = {};
  for (const [, alike] of Map.groupBy(uses, ({ response }) => JSON.stringify(response))) {
    const [first] = alike;
    if (!first || alike.length === 1) continue;
    const named = `${dataName(first.response)}${first.status}`;
    const name =
      named in shared || !dataName(first.response) ? pascalCase(String(first.operation['operationId'])) : named;
    shared[name] = first.response;
    for (const { responses, status } of alike) responses[status] = responseRef(name);
  }
  return shared;
}
