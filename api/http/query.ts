import { z } from 'zod';
import { mapping } from '../../engine/mapping.ts';

/** What OpenAPI should say about a parameter that arrives as text. */
export const documentedAs = new WeakMap<z.core.$ZodType, Readonly<Record<string, unknown>>>();

function documented<S extends z.ZodType>(schema: S, json: Readonly<Record<string, unknown>>): S {
  documentedAs.set(schema, json);
  return schema;
}

type IntegerOptions = Readonly<{ minimum: number; maximum: number; description?: string }>;

/** A whole number in a query or path, with a default. */
export function queryInteger(options: IntegerOptions & { default: number }) {
  const { minimum, maximum } = options;
  return documented(integerText(options).default(options.default), {
    type: 'integer',
    minimum,
    maximum,
    default: options.default,
    ...(options.description ? { description: options.description } : {}),
  });
}

/** A whole number in a query or path. */
export function integerText(options: IntegerOptions) {
  const { minimum, maximum, description } = options;
  return documented(
    z
      .string()
      .regex(/^-?\d{1,15}$/, 'must be a whole number')
      .pipe(mapping(Number))
      .pipe(z.int().min(minimum).max(maximum)),
    { type: 'integer', minimum, maximum, ...(description ? { description } : {}) },
  );
}

/** `true` or `false` in a query. */
export function queryBoolean(description?: string) {
  return documented(z.enum(['true', 'false'], 'must be true or false').pipe(mapping((text) => text === 'true')), {
    type: 'boolean',
    ...(description ? { description } : {}),
  });
}

/** A query string as an object; a name given twice becomes an array, which scalar parameters refuse. */
export function parseQuery(url: string): Record<string, string | string[]> {
  const start = url.indexOf('?');
  if (start === -1) return {};
  const values: Record<string, string | string[]> = Object.create(null);
  for (const [name, value] of new URLSearchParams(url.slice(start + 1))) {
    const before = values[name];
    if (before === undefined) values[name] = value;
    else if (typeof before === 'string') values[name] = [before, value];
    else before.push(value);
  }
  return values;
}
