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
  const names = new Map<string, string>();
  for (const [name, part] of Object.entries((parts ?? {}) as Record<string, JsonSchema>)) {
    names.set(name, componentName(name, part, io, components));
  }
  for (const [name, part] of Object.entries((parts ?? {}) as Record<string, JsonSchema>)) {
    components.set(names.get(name) ?? name, relocate(part, names) as JsonSchema);
  }
  return relocate(own, names) as JsonSchema;
}

function componentName(name: string, part: JsonSchema, io: 'input' | 'output', components: SchemaNames): string {
  // Recursive schemas without a name of their own get one from zod that is unique in one conversion alone.
  const base = name.startsWith('__schema') ? (JSON.stringify(part).includes('"null"') ? 'AnyJson' : name) : name;
  const known = components.get(base);
  if (!known) return base;
  const same = JSON.stringify(relocate(part, new Map([[name, base]]))) === JSON.stringify(known);
  if (same) return base;
  return io === 'input' ? `${base}Input` : `${base}Output`;
}
