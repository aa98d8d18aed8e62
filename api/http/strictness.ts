import { z } from 'zod';

type Node = Record<string, unknown>;

function looseObject(node: unknown, path: string): string | undefined {
  if (typeof node !== 'object' || node === null) return undefined;
  const { type, properties, additionalProperties } = node as Node;
  if (type === 'object' && properties !== undefined && additionalProperties === undefined) return path || 'the body';
  for (const [key, inner] of Object.entries(node)) {
    const found = looseObject(inner, key === 'properties' ? path : `${path}/${key}`);
    if (found) return found;
  }
  return undefined;
}

/**
 * Unknown fields are 400 at any depth (docs/interface.md 10.1), and a plain `z.object` drops them in silence: found when
 * the endpoint is defined. `z.looseObject` says on purpose that anything may come.
 * @throws Error that says where
 */
export function requireStrict(name: string, schema: z.ZodType): void {
  const found = looseObject(z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }), '');
  if (found) throw new Error(`${name}: use z.strictObject for ${found}`);
}
