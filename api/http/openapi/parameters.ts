import type { z } from 'zod';
import { takesIdempotencyKey } from '../declared_errors.ts';
import { type Endpoint, isStream, type StreamResponse } from '../endpoint.ts';
import { exampleOf } from './example.ts';
import { type JsonSchema, publishedSchema, referencedName, type SchemaNames, toJsonSchema } from './json_schema.ts';
import { pascalCase } from './names.ts';

type Place = 'path' | 'query' | 'header';

/** As it is usually written: `last-event-id` → `Last-Event-ID`. */
function headerName(name: string): string {
  const words = name.replace(/(^|-)[a-z]/g, (letter) => letter.toUpperCase());
  return words.replace('Event-Id', 'Event-ID');
}

function parametersOf(schema: z.ZodObject, place: Place, components: SchemaNames): JsonSchema[] {
  const whole = toJsonSchema(schema, 'input', components) as {
    properties?: Record<string, JsonSchema>;
    required?: string[];
  };
  return Object.entries(whole.properties ?? {}).map(([name, property]) => {
    const { examples: _own, ...rest } = property;
    const named = components.get(referencedName(property) ?? '');
    const description = property['description'] ?? named?.['description'];
    delete rest['description'];
    const required = place === 'path' || (whole.required ?? []).includes(name);
    return {
      name: place === 'header' ? headerName(name) : name,
      in: place,
      ...(required ? { required } : {}),
      ...(description ? { description } : {}),
      schema: publishedSchema(rest),
      ...(required ? { example: exampleOf(property, components, name) } : {}),
    };
  });
}

const idempotencyKey = {
  name: 'Idempotency-Key',
  in: 'header',
  description:
    'Makes the call safe to repeat: the first success under a key is kept for 24 hours, and the same caller gets it again for the same path and body, with `Idempotency-Replayed: true`. Printable ASCII.',
  schema: { type: 'string', minLength: 1, maxLength: 200 },
  example: '2026-11-27-sales-report',
};

const byteParameters = [
  {
    name: 'Range',
    in: 'header',
    description: 'One byte range, such as `bytes=0-1023`. For several ranges the response is the whole file.',
    schema: { type: 'string' },
  },
  {
    name: 'If-None-Match',
    in: 'header',
    description: 'The `ETag` of an earlier response: 304 while the bytes are the same.',
    schema: { type: 'string' },
  },
];

/** All parameters of an endpoint, those that follow from its shape included. */
export function endpointParameters(endpoint: Endpoint, components: SchemaNames): JsonSchema[] {
  const { response } = endpoint;
  return [
    ...parametersOf(endpoint.params, 'path', components),
    ...parametersOf(endpoint.query, 'query', components),
    ...parametersOf(endpoint.headers, 'header', components),
    ...(takesIdempotencyKey(endpoint) ? [idempotencyKey] : []),
    ...(isStream<StreamResponse>(response) && response.ranges ? byteParameters : []),
  ];
}

/**
 * Replaces parameters that several operations have by references, in place.
 * @returns them as `components.parameters`; where two differ under one name, each is named after its first operation
 */
export function shareParameters(operations: readonly JsonSchema[]): Record<string, JsonSchema> {
  const uses = operations.flatMap((operation) =>
    ((operation['parameters'] ?? []) as JsonSchema[]).map((parameter) => ({
      parameter,
      name: pascalCase(String(parameter['name'])),
      operation: pascalCase(String(operation['operationId'])),
    })),
  );
  const byText = Map.groupBy(uses, ({ parameter }) => JSON.stringify(parameter));
  const repeated = [...byText].flatMap(([text, [first, ...others]]) =>
    first && others.length > 0 ? [{ text, ...first }] : [],
  );
  const byName = Map.groupBy(repeated, ({ name }) => name);
  const shared = repeated.map(({ text, parameter, name, operation }) => {
    const alone = byName.get(name)?.length === 1;
    return { text, parameter, name: alone ? name : `${operation}${name}` };
  });
  const names = new Map(shared.map(({ text, name }) => [text, name]));
  for (const operation of operations) {
    if (!operation['parameters']) continue;
    operation['parameters'] = (operation['parameters'] as JsonSchema[]).map((parameter) => {
      const name = names.get(JSON.stringify(parameter));
      return name === undefined ? parameter : { $ref: `#/components/parameters/${name}` };
    });
  }
  return Object.fromEntries(shared.map(({ name, parameter }) => [name, parameter]));
}
