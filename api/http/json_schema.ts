import { createHash } from 'node:crypto';
import { z } from 'zod';
import { documentedAs } from './query.ts';

export type JsonSchema = { [key: string]: unknown };

/** Schemas that are named (`.meta({ id })`), gathered for `components.schemas`. */
export type SchemaNames = Map<string, JsonSchema>;

function isObject(value: unknown): value is JsonSchema {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** References inside the schema, led to the document's components. */
function relocate(value: unknown, names: ReadonlyMap<string, string>): unknown {
  if (Array.isArray(value)) return value.map((item) => relocate(item, names));
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => {
      if (key !== '$ref' || typeof inner !== 'string') return [key, relocate(inner, names)];
      const name = inner.replace(/^#\/\$defs\//, '');
      return [key, `#/components/schemas/${names.get(name) ?? name}`];
    }),
  );
}

/**
 * A zod schema as JSON Schema 2020-12, the dialect of OpenAPI 3.1. Named parts go into `components`; a part that reads
 * differently as input and as output is there twice.
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
    },
  }) as JsonSchema;
  const { $schema: _dialect, $defs: parts, ...own } = converted;
  const names = nameParts((parts ?? {}) as Record<string, JsonSchema>, io, components);
  return relocate(own, names) as JsonSchema;
}

/** zod names recursive schemas without an id `__schema0` and so on, which means something in one conversion alone. */
function baseName(name: string, part: JsonSchema): string {
  if (!name.startsWith('__schema')) return name;
  const text = JSON.stringify(part, (_key, value) => (value === `#/$defs/${name}` ? '#self' : value));
  return text === anyJson ? 'AnyJson' : `Recursive${createHash('sha256').update(text).digest('hex').slice(0, 8)}`;
}

const anyJson = (() => {
  const parts = z.toJSONSchema(z.object({ json: z.json() })).$defs ?? {};
  const [name, part] = Object.entries(parts)[0] ?? [];
  return JSON.stringify(part, (_key, value) => (value === `#/$defs/${name}` ? '#self' : value));
})();

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
    components.set(names.get(name) ?? name, relocate(part, names) as JsonSchema);
  }
  return names;
}
