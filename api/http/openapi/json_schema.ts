import { createHash } from 'node:crypto';
import { z } from 'zod';
import { documentedAs } from '../query.ts';

export type JsonSchema = { [key: string]: unknown };

/** Schemas that are named (`.meta({ id })`), gathered for `components.schemas`. */
export type SchemaNames = Map<string, JsonSchema>;

const SCHEMA_REF = '#/components/schemas/';

export function schemaRef(name: string): { $ref: string } {
  return { $ref: `${SCHEMA_REF}${name}` };
}

/** The name in a reference to a named schema; undefined for any other schema. */
export function referencedName(schema: JsonSchema): string | undefined {
  const { $ref } = schema;
  return typeof $ref === 'string' && $ref.startsWith(SCHEMA_REF) ? $ref.slice(SCHEMA_REF.length) : undefined;
}

const schemaKeywords = new Set(['items', 'additionalProperties', 'propertyNames', 'not']);
const listKeywords = new Set(['anyOf', 'oneOf', 'allOf', 'prefixItems']);

export function isObject(value: unknown): value is JsonSchema {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The schema with `change` applied to every schema inside it, innermost first; examples and constants stay untouched. */
export function mapSchemas(schema: unknown, change: (schema: JsonSchema) => JsonSchema): unknown {
  if (!isObject(schema)) return schema;
  const entries = Object.entries(schema).map(([key, value]) => {
    if (schemaKeywords.has(key)) return [key, mapSchemas(value, change)];
    if (listKeywords.has(key)) return [key, (value as unknown[]).map((inner) => mapSchemas(inner, change))];
    if (key !== 'properties') return [key, value];
    const properties = Object.entries(value as JsonSchema);
    return [key, Object.fromEntries(properties.map(([name, inner]) => [name, mapSchemas(inner, change)]))];
  });
  return change(Object.fromEntries(entries));
}

const scalarTypes = new Set<unknown>(['string', 'integer', 'number', 'boolean']);

/** `anyOf: [{type: string}, {type: null}]` as `type: [string, null]`, which generators and readers take in faster. */
function mergeNull(schema: JsonSchema): JsonSchema {
  const { anyOf, ...rest } = schema;
  if (!Array.isArray(anyOf) || anyOf.length !== 2) return schema;
  const [inner, other] = anyOf as [JsonSchema, JsonSchema];
  if (other['type'] !== 'null' || !scalarTypes.has(inner['type']) || 'enum' in inner || 'const' in inner) return schema;
  return { ...inner, ...rest, type: [inner['type'], 'null'] };
}

/** Leaves out what says nothing: the limits of every safe integer, and that the names of properties are strings. */
function tidy(schema: JsonSchema): JsonSchema {
  const { minimum, maximum, propertyNames, ...rest } = schema;
  return mergeNull({
    ...rest,
    ...(minimum === undefined || minimum === Number.MIN_SAFE_INTEGER ? {} : { minimum }),
    ...(maximum === undefined || maximum === Number.MAX_SAFE_INTEGER ? {} : { maximum }),
    ...(propertyNames === undefined || JSON.stringify(propertyNames) === '{"type":"string"}' ? {} : { propertyNames }),
  });
}

/** Leads references inside the schema to the document's components. */
function relocate(schema: JsonSchema, names: ReadonlyMap<string, string>): JsonSchema {
  return mapSchemas(schema, (inner) => {
    const { $ref } = inner;
    if (typeof $ref !== 'string') return inner;
    const name = $ref.replace(/^#\/\$defs\//, '');
    return { ...inner, ...schemaRef(names.get(name) ?? name) };
  }) as JsonSchema;
}

/**
 * A zod schema as JSON Schema 2020-12, the dialect of OpenAPI 3.1. Named parts go into `components`; a part that reads
 * differently as input and as output is there twice. Responses are open objects: clients ignore fields they do not know.
 * The keyword `example` of a named part is for `exampleOf`; `publishedSchema` takes it out.
 */
export function toJsonSchema(schema: z.ZodType, io: 'input' | 'output', components: SchemaNames): JsonSchema {
  const converted = z.toJSONSchema(schema, {
    target: 'draft-2020-12',
    io,
    unrepresentable: 'any',
    override({ zodSchema, jsonSchema }) {
      const documented = documentedAs.get(zodSchema);
      if (documented) {
        for (const key of Object.keys(jsonSchema)) delete jsonSchema[key as keyof typeof jsonSchema];
        Object.assign(jsonSchema, documented);
      }
      // The formats say it; the patterns behind them are hundreds of characters long.
      if (jsonSchema.format === 'date-time' || jsonSchema.format === 'uuid') delete jsonSchema.pattern;
      if (jsonSchema.id) delete jsonSchema.id;
      const { def } = zodSchema._zod;
      if (def.type === 'object' && def.catchall === undefined) delete jsonSchema.additionalProperties;
    },
  }) as JsonSchema;
  const { $schema: _dialect, $defs, ...own } = converted;
  const parts = Object.entries(($defs ?? {}) as Record<string, JsonSchema>);
  const tidied = Object.fromEntries(
    parts.map(([name, part]) => {
      const shown = mapSchemas(part, tidy) as JsonSchema;
      return [name, recursiveText(name, shown) === anyJson ? anyValue : shown];
    }),
  );
  const names = nameParts(tidied, io, components);
  return relocate(mapSchemas(own, tidy) as JsonSchema, names);
}

/** The text of a recursive part, whatever it is called. */
function recursiveText(name: string, part: unknown): string {
  return JSON.stringify(part, (_key, value) => (value === `#/$defs/${name}` ? '#self' : value));
}

const anyJson = (() => {
  const parts = z.toJSONSchema(z.object({ json: z.json() })).$defs ?? {};
  const [name = '', part] = Object.entries(parts)[0] ?? [];
  return recursiveText(name, mapSchemas(part, tidy));
})();

/** In place of the recursive `z.json()`, which generators of types cannot express. */
const anyValue: JsonSchema = { description: 'Any JSON value.' };

/** Recursive parts come as `__schema0`, numbered anew in each schema: they are named after what they are. */
function baseName(name: string, part: JsonSchema): string {
  if (!name.startsWith('__')) return name;
  if (part === anyValue) return 'AnyJson';
  return `Recursive${createHash('sha256').update(recursiveText(name, part)).digest('hex').slice(0, 8)}`;
}

/**
 * Puts the named parts into `components` and returns what each is called there. A part that is known in another form
 * gets a name of its own, and so do those that refer to it, until no name stands for two things.
 */
function nameParts(
  parts: Record<string, JsonSchema>,
  io: 'input' | 'output',
  components: SchemaNames,
): ReadonlyMap<string, string> {
  const names = new Map(Object.entries(parts).map(([name, part]) => [name, baseName(name, part)]));
  for (let changed = true; changed; ) {
    changed = false;
    for (const [name, part] of Object.entries(parts)) {
      const called = names.get(name) ?? name;
      const known = components.get(called);
      if (!known || JSON.stringify(relocate(part, names)) === JSON.stringify(known)) continue;
      const suffix = io === 'input' ? 'Input' : 'Output';
      if (called.endsWith(suffix)) throw new Error(`two different schemas have the id ${name}`);
      names.set(name, `${called}${suffix}`);
      changed = true;
    }
  }
  for (const [name, part] of Object.entries(parts)) {
    components.set(names.get(name) ?? name, relocate(part, names));
  }
  return names;
}

/** The schema as the document shows it. */
export function publishedSchema(schema: JsonSchema): JsonSchema {
  return mapSchemas(schema, ({ example: _parts, ...shown }) => shown) as JsonSchema;
}
