import { z } from 'zod';
import { percentile } from '../measure.ts';
import { ADMIN_TOKEN } from '../server.ts';

const typeSchema = z.object({ kind: z.string(), name: z.string().nullable() });
const deepType = typeSchema.extend({ ofType: typeSchema.nullable() });
const fieldSchema = z.object({
  name: z.string(),
  type: deepType,
  args: z.array(z.object({ name: z.string(), type: deepType.extend({ ofType: deepType.nullable() }) })),
});
const schemaSchema = z.object({
  __schema: z.object({
    types: z.array(
      z.object({
        name: z.string(),
        fields: z.array(fieldSchema).nullable(),
        enumValues: z.array(z.object({ name: z.string() })).nullable(),
      }),
    ),
  }),
});
const pageSchema = z.object({ page: z.object({ nodes: z.array(z.unknown()) }) });
const INTROSPECTION = `{ __schema { types { name enumValues { name } fields { name type { kind name ofType { kind name } }
  args { name type { kind name ofType { kind name ofType { kind name } } } } } } } }`;

/** A page of 50 of one list in one order; `p50` and `max` in ms. */
export type PageTime = Readonly<{ list: string; order: string; rows: number; p50: number; max: number }>;

type Ask = (query: string) => Promise<unknown>;

function asker(url: string, organizationId: string | undefined): Ask {
  const scope = organizationId === undefined ? {} : { 'x-organization-id': organizationId };
  const headers = { authorization: `Bearer ${ADMIN_TOKEN}`, 'content-type': 'application/json', ...scope };
  return async (query) => {
    const response = await fetch(`${url}/internal/admin/graphql`, {
      method: 'POST',
      headers,
      body: JSON.stringify({ query }),
    });
    const text = await response.text();
    const envelope = z.looseObject({ data: z.unknown().optional() }).parse(JSON.parse(text));
    // Some orders have an index within an organization alone.
    if (response.status === 400 && text.includes('"organization_required"')) return undefined;
    if (envelope.data === undefined || 'errors' in envelope) throw new Error(`${query}: ${text}`);
    return envelope.data;
  };
}

/** Every list at the root with all of its orders, and a selection of everything on its rows that is a plain value. */
async function pages(ask: Ask): Promise<readonly { list: string; order: string; query: string }[]> {
  const { types } = schemaSchema.parse(await ask(INTROSPECTION)).__schema;
  const byName = new Map(types.map((type) => [type.name, type]));
  const nameOf = (type: z.output<typeof deepType>) => type.name ?? type.ofType?.name ?? '';
  const isPlain = ({ type }: z.output<typeof fieldSchema>) =>
    ['SCALAR', 'ENUM'].includes(type.kind === 'NON_NULL' ? (type.ofType?.kind ?? '') : type.kind);
  return (byName.get('Query')?.fields ?? []).flatMap((field) => {
    const connection = nameOf(field.type);
    if (!connection.endsWith('Connection')) return [];
    const row = byName.get(connection.replace(/Connection$/, ''));
    const plain = row?.fields?.filter((one) => isPlain(one) && one.args.length === 0).map(({ name }) => name) ?? [];
    const order = field.args.find(({ name }) => name === 'orderBy')?.type;
    const orders = byName.get(order?.ofType?.ofType?.name ?? order?.ofType?.name ?? '')?.enumValues ?? [];
    return orders.map(({ name }) => ({
      list: field.name,
      order: name,
      query: `{ page: ${field.name}(first: 50, orderBy: [${name}]) { nodes { ${plain.join(' ')} } pageInfo { hasNextPage endCursor } } }`,
    }));
  });
}

/** First pages of 50 over HTTP: of all organizations, or of one. The slowest order of each list comes first. */
export async function measureAdminLists(
  url: string,
  organizationId: string | undefined,
  rounds: number,
): Promise<readonly PageTime[]> {
  const ask = asker(url, organizationId);
  const times: PageTime[] = [];
  for (const { list, order, query } of await pages(ask)) {
    const samples: number[] = [];
    let rows = 0;
    // Twice without looking: the query is planned, and the connection has read its catalog.
    for (let round = -2; round < rounds; round += 1) {
      const started = performance.now();
      const response = await ask(query);
      if (response === undefined) break;
      rows = pageSchema.parse(response).page.nodes.length;
      if (round >= 0) samples.push(performance.now() - started);
    }
    if (samples.length > 0) times.push({ list, order, rows, p50: percentile(samples, 0.5), max: Math.max(...samples) });
  }
  return times.sort((a, b) => b.p50 - a.p50);
}
