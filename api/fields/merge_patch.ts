import type { z } from 'zod';

type Fields = Readonly<Record<string, z.ZodType>>;
type Removable<F extends Fields> = { [K in keyof F]: z.ZodOptional<z.ZodNullable<F[K]>> };

/** The fields of an object inside a JSON merge patch: each may be left out, or null, which brings its default back. */
export function removable<F extends Fields>(fields: F): Removable<F> {
  const entries = Object.entries(fields).map(([name, field]) => [name, field.nullable().optional()]);
  return Object.fromEntries(entries) as Removable<F>;
}
