import { visibleText } from '../texts.ts';

// Schemas of strangers: they are shown to agents, and what agents send is checked by them. A pattern can take years to match, a
// reference to another server makes us ask it, and a name outside of the standard is of no use to us.

const MAX_DEPTH = 32;

const SCHEMA = new Set([
  'items',
  'additionalProperties',
  'additionalItems',
  'contains',
  'propertyNames',
  'not',
  'if',
  'then',
  'else',
  'unevaluatedItems',
  'unevaluatedProperties',
]);
const SCHEMAS = new Set(['allOf', 'anyOf', 'oneOf', 'prefixItems']);
const NAMED_SCHEMAS = new Set(['properties', '$defs', 'definitions', 'dependentSchemas']);
const VALUES = new Set([
  'type',
  'enum',
  'const',
  'default',
  'examples',
  'title',
  'description',
  'format',
  'required',
  'dependentRequired',
  'minimum',
  'maximum',
  'exclusiveMinimum',
  'exclusiveMaximum',
  'multipleOf',
  'minLength',
  'maxLength',
  'minItems',
  'maxItems',
  'uniqueItems',
  'minContains',
  'maxContains',
  'minProperties',
  'maxProperties',
  'readOnly',
  'writeOnly',
  'deprecated',
]);

const REFERENCES = ['$ref', '$dynamicRef', '$recursiveRef'];
const KNOWN = new Set([...SCHEMA, ...SCHEMAS, ...NAMED_SCHEMAS, ...VALUES, ...REFERENCES]);

export class SchemaError extends Error {
  override name = 'SchemaError';
  readonly problem: 'remote_reference' | 'too_deep' | 'not_a_schema';
  constructor(problem: SchemaError['problem']) {
    super(problem);
    this.problem = problem;
  }
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

function named(value: unknown, depth: number): unknown {
  if (!isObject(value)) throw new SchemaError('not_a_schema');
  // It defines each name, so that one like `__proto__` stays a name.
  return Object.fromEntries(Object.entries(value).map(([name, schema]) => [name, safeSchema(schema, depth)]));
}

function keyword(name: string, value: unknown, depth: number): unknown {
  if (REFERENCES.includes(name)) {
    if (name === '$ref' && typeof value === 'string' && value.startsWith('#')) return value;
    throw new SchemaError('remote_reference');
  }
  if (NAMED_SCHEMAS.has(name)) return named(value, depth + 1);
  if (SCHEMAS.has(name) || (name === 'items' && Array.isArray(value))) {
    if (!Array.isArray(value)) throw new SchemaError('not_a_schema');
    return value.map((one) => safeSchema(one, depth + 1));
  }
  if ((name === 'title' || name === 'description') && typeof value === 'string') return visibleText(value);
  return SCHEMA.has(name) ? safeSchema(value, depth + 1) : value;
}

/**
 * The schema with the keywords that we know, without patterns and without identifiers that change what a reference means.
 * @throws SchemaError
 */
export function safeSchema(schema: unknown, depth = 0): Readonly<Record<string, unknown>> | boolean {
  if (depth > MAX_DEPTH) throw new SchemaError('too_deep');
  if (typeof schema === 'boolean') return schema;
  if (!isObject(schema)) throw new SchemaError('not_a_schema');
  const kept = Object.entries(schema).filter(([name]) => KNOWN.has(name));
  return Object.fromEntries(kept.map(([name, value]) => [name, keyword(name, value, depth)]));
}
