import t from 'tap';
import { z } from 'zod';
import { adminEndpoints } from '../../../api/admin/endpoints.ts';
import { apiEndpoints } from '../../../api/app.ts';
import { isStream } from '../../../api/http/endpoint.ts';
import { systemEndpoints } from '../../../api/system/public.ts';

/** Where a plain `z.object` lies, which drops unknown fields in silence; `z.looseObject` says on purpose that anything may come. */
function plainObject(node: unknown, path = ''): string | undefined {
  if (typeof node !== 'object' || node === null) return undefined;
  const { type, properties, additionalProperties }: Record<string, unknown> = { ...node };
  if (type === 'object' && properties !== undefined && additionalProperties === undefined) return path || 'the body';
  for (const [key, inner] of Object.entries(node)) {
    const found = plainObject(inner, key === 'properties' ? path : `${path}/${key}`);
    if (found) return found;
  }
  return undefined;
}

const find = (schema: z.ZodType) => plainObject(z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }));

t.test('unknown fields are refused at any depth of every body', async (t) => {
  let bodies = 0;
  for (const { operationId, body } of [...apiEndpoints(), ...adminEndpoints(), ...systemEndpoints([])]) {
    if (body === undefined || isStream(body)) continue;
    t.equal(find(body), undefined, `${operationId}: use z.strictObject`);
    bodies += 1;
  }
  t.ok(bodies > 40, `${bodies} bodies`);
});

t.test('a plain object is found wherever it lies', async (t) => {
  const inner = z.object({ a: z.string() });
  t.equal(find(inner), 'the body');
  t.equal(find(z.strictObject({ list: z.array(inner) })), '/list/items');
  t.equal(find(z.strictObject({ one: z.union([z.string(), inner]) })), '/one/anyOf/1');
  t.equal(find(z.strictObject({ open: z.looseObject({ a: z.string() }) })), undefined);
});
