import type { JsonSchema, SchemaNames } from './json_schema.ts';

const hex64 = '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08';

/** What fields of these names hold in examples, where their schema allows it. */
const byName: Readonly<Record<string, unknown>> = {
  name: 'Acme',
  slug: 'acme',
  key: 'growth',
  title: 'Write the sales report',
  identifier: 'T-12',
  taskRef: 'T-12',
  objective: 'Summarize the sales of January by region.',
  summary: 'The report covers 4 regions.',
  message: 'The command exited with status 1.',
  label: 'Reading the input',
  path: 'report.json',
  mediaType: 'application/json',
  timezone: 'Europe/Berlin',
  model: 'large-1',
  harness: 'reference-worker',
  workerId: 'worker-1',
  sha256: hex64,
  revision: hex64,
  commandHash: hex64,
  executionToken: hex64,
  leaseToken: `3.${hex64}`,
  sizeBytes: 1024,
  size: 1024,
};

const logicalUri = 'org://0197f3c2-7a2b-7c3d-8e4f-5a6b7c8d9e0f/notes';

const byFormat: Readonly<Record<string, string>> = {
  uuid: '0197f3c2-7a2b-7c3d-8e4f-5a6b7c8d9e0f',
  'date-time': '2026-01-31T09:30:00.000Z',
  date: '2026-01-31',
  uri: 'https://acme.example/',
  email: 'anna@acme.example',
};

function fits(schema: JsonSchema, value: unknown): boolean {
  const types: readonly unknown[] = Array.isArray(schema['type']) ? schema['type'] : [schema['type']];
  if (typeof value === 'number') return types.includes('integer') || types.includes('number');
  if (typeof value !== 'string' || !types.includes('string')) return false;
  if (schema['format'] !== undefined || schema['enum'] !== undefined) return false;
  const { pattern, maxLength } = schema;
  if (typeof maxLength === 'number' && value.length > maxLength) return false;
  return typeof pattern !== 'string' || new RegExp(pattern, 'u').test(value);
}

function textExample(schema: JsonSchema): string {
  const text = byFormat[String(schema['format'])] ?? 'text';
  const { minLength } = schema;
  return typeof minLength === 'number' ? text.padEnd(minLength, 'x') : text;
}

function numberExample(schema: JsonSchema): number {
  const minimum = typeof schema['minimum'] === 'number' ? schema['minimum'] : 0;
  const maximum = typeof schema['maximum'] === 'number' ? schema['maximum'] : 1;
  return Math.min(Math.max(minimum, 1), maximum);
}

function objectExample(schema: JsonSchema, components: SchemaNames, depth: number): unknown {
  const properties = (schema['properties'] ?? {}) as Record<string, JsonSchema>;
  const required = (schema['required'] ?? []) as readonly string[];
  const shown = Object.entries(properties).filter(([name]) => depth < 6 || required.includes(name));
  return Object.fromEntries(shown.map(([name, property]) => [name, exampleOf(property, components, depth + 1, name)]));
}

/**
 * An example of what a schema describes: its own (`.meta({ examples })`, at any depth), a default, or one made from
 * types, formats and names. A test holds all of them against their schemas.
 */
export function exampleOf(schema: JsonSchema, components: SchemaNames, depth = 0, name = ''): unknown {
  const { examples, $ref, anyOf, oneOf, items } = schema;
  if (Array.isArray(examples) && examples.length > 0) return examples[0];
  if ('const' in schema) return schema['const'];
  if ('default' in schema) return schema['default'];
  if (typeof $ref === 'string') {
    const target = components.get($ref.replace('#/components/schemas/', ''));
    return target && depth < 10 ? exampleOf(target, components, depth + 1, name) : {};
  }
  if (Array.isArray(schema['enum'])) return schema['enum'][0];
  const choices = (anyOf ?? oneOf) as readonly JsonSchema[] | undefined;
  if (choices) {
    const choice = choices.find((one) => one['type'] !== 'null') ?? { type: 'null' };
    return exampleOf(choice, components, depth + 1, name);
  }
  const named = name.endsWith('Uri') ? logicalUri : byName[name];
  if (named !== undefined && fits(schema, named)) return named;
  switch (schema['type']) {
    case 'object':
      return objectExample(schema, components, depth);
    case 'array':
      return items && depth < 8 ? [exampleOf(items as JsonSchema, components, depth + 1, name)] : [];
    case 'string':
      return textExample(schema);
    case 'integer':
    case 'number':
      return numberExample(schema);
    case 'boolean':
      return true;
    default:
      return null;
  }
}
