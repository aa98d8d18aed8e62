import { valuesByName } from './example_values.ts';
import { isObject, type JsonSchema, referencedName, type SchemaNames } from './json_schema.ts';

const MAX_DEPTH = 10;

const byFormat: Readonly<Record<string, string>> = {
  uuid: '01a21c46-afde-7767-a248-8b810dfafe39',
  'date-time': '2026-11-27T09:12:04.318Z',
  date: '2026-11-27',
  uri: 'https://lampstudio.example/',
  email: 'aiko@lampstudio.example',
};

const formats: Readonly<Record<string, RegExp>> = {
  uuid: /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/,
  'date-time': /^\d{4}-\d\d-\d\dT[\d:.]+Z$/,
};

function within(schema: JsonSchema, size: number, least: string, most: string): boolean {
  const { [least]: minimum, [most]: maximum } = schema;
  return !(typeof minimum === 'number' && size < minimum) && !(typeof maximum === 'number' && size > maximum);
}

function fits(schema: JsonSchema, value: unknown): boolean {
  const types: readonly unknown[] = Array.isArray(schema['type']) ? schema['type'] : [schema['type']];
  if (Array.isArray(schema['enum'])) return schema['enum'].includes(value);
  if (typeof value === 'number') {
    return (types.includes('integer') || types.includes('number')) && within(schema, value, 'minimum', 'maximum');
  }
  if (typeof value !== 'string' || !types.includes('string')) return false;
  const { format, pattern } = schema;
  if (typeof format === 'string' && formats[format]?.test(value) !== true) return false;
  if (!within(schema, value.length, 'minLength', 'maxLength')) return false;
  return typeof pattern !== 'string' || new RegExp(pattern, 'u').test(value);
}

function textExample(schema: JsonSchema, name: string): string {
  const format = byFormat[String(schema['format'])];
  if (format !== undefined) return format;
  const { minLength } = schema;
  return typeof minLength === 'number' ? name.padEnd(minLength, 'x') : name;
}

function numberExample(schema: JsonSchema): number {
  const minimum = typeof schema['minimum'] === 'number' ? schema['minimum'] : 0;
  const maximum = typeof schema['maximum'] === 'number' ? schema['maximum'] : 1;
  return Math.min(Math.max(minimum, 1), maximum);
}

type Place = Readonly<{ components: SchemaNames; depth: number; name: string }>;

/** Required properties, and of the others those that `parts` gives; without `parts` all of them. */
function objectExample(schema: JsonSchema, parts: JsonSchema | undefined, { components, depth }: Place): unknown {
  const properties = (schema['properties'] ?? {}) as Record<string, JsonSchema>;
  const required = (schema['required'] ?? []) as readonly string[];
  const shown = Object.entries(properties).filter(
    ([name]) => required.includes(name) || (parts ? name in parts : depth < 6),
  );
  const made = shown.map(([name, property]) => {
    const given = parts?.[name];
    return [name, given === undefined ? exampleAt(property, { components, depth: depth + 1, name }) : given];
  });
  return { ...Object.fromEntries(made), ...parts };
}

function exampleAt(schema: JsonSchema, place: Place): unknown {
  const { components, depth, name } = place;
  const { examples, anyOf, oneOf, items, type } = schema;
  if (Array.isArray(examples) && examples.length > 0) return examples[0];
  if ('const' in schema) return schema['const'];
  if ('default' in schema) return schema['default'];
  const reference = referencedName(schema);
  if (reference !== undefined) {
    const target = components.get(reference);
    return target && depth < MAX_DEPTH ? exampleAt(target, { ...place, depth: depth + 1 }) : {};
  }
  const choices = (anyOf ?? oneOf) as readonly JsonSchema[] | undefined;
  if (choices) {
    const choice = choices.find((one) => one['type'] !== 'null') ?? { type: 'null' };
    return exampleAt(choice, { ...place, depth: depth + 1 });
  }
  const named = valuesByName[name];
  if (named !== undefined && fits(schema, named)) return named;
  if (Array.isArray(schema['enum'])) return schema['enum'][0];
  switch (Array.isArray(type) ? type[0] : type) {
    case 'object': {
      const parts = schema['example'];
      return objectExample(schema, isObject(parts) ? parts : undefined, place);
    }
    case 'array':
      return items && depth < MAX_DEPTH ? [exampleAt(items as JsonSchema, { ...place, depth: depth + 1 })] : [];
    case 'string':
      return textExample(schema, name);
    case 'integer':
    case 'number':
      return numberExample(schema);
    case 'boolean':
      return true;
    default:
      return null;
  }
}

/**
 * An example of what a schema describes: its own (`.meta({ examples })`, at any depth), a default, or one made from
 * names, types and formats. A named schema can give parts of it (`.meta({ id, example: { … } })`): the rest is made, and
 * optional properties are left out unless they are given. A test validates all examples against their schemas.
 * @param name of the property or parameter that holds it
 */
export function exampleOf(schema: JsonSchema, components: SchemaNames, name = ''): unknown {
  return exampleAt(schema, { components, depth: 0, name });
}

/** The same for a response: with `given`, an object is completed from it, and so is each item of a list. */
export function completedExample(schema: JsonSchema, components: SchemaNames, given: unknown): unknown {
  return given === undefined ? exampleOf(schema, components) : completed(exampleOf(schema, components), given);
}

function completed(made: unknown, given: unknown): unknown {
  if (Array.isArray(made) && Array.isArray(given)) return given.map((item) => completed(made[0], item));
  // Of a union: they are of different members.
  const isOther = isObject(made) && isObject(given) && made['kind'] !== (given['kind'] ?? made['kind']);
  return isObject(made) && isObject(given) && !isOther ? { ...made, ...given } : given;
}
