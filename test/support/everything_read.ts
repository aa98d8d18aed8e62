// Reads all that an API shows of what a test has made: each path, and each list of the administrator's queries.
import { adminClient } from './admin.ts';
import type { TestApp } from './app.ts';
import type { Client } from './http.ts';

type Spec = Readonly<{ paths: Readonly<Record<string, Readonly<Record<string, { responses: unknown }>>>> }>;

/** Asks each GET for which there is a value of every parameter, as each of these clients; how many responses were of success. */
export async function readPaths(
  app: TestApp,
  values: Readonly<Record<string, string>>,
  clients: readonly Client[],
  query: Readonly<Record<string, string>>,
): Promise<number> {
  const { paths } = (await (await app.owner.fetch('/openapi.json')).json()) as Spec;
  let successes = 0;
  for (const [template, { get }] of Object.entries(paths)) {
    if (get === undefined || JSON.stringify(get.responses).includes('text/event-stream')) continue;
    const path = template.replace(/\{(\w+)\}/g, (all, name: string) => values[name] ?? all);
    if (path.includes('{')) continue;
    for (const client of clients) {
      for (const asked of ['', `?${new URLSearchParams(query)}`]) {
        const response = await client.fetch(`${path}${asked}`);
        await response.text();
        if (response.ok) successes += 1;
      }
    }
  }
  return successes;
}

type TypeRef = Readonly<{ kind: string; name: string | null; ofType?: TypeRef | null }>;
type Field = Readonly<{ name: string; args: readonly { name: string; type: TypeRef }[]; type: TypeRef }>;
type Schema = Readonly<{
  __schema: { queryType: { name: string }; types: readonly { name: string; fields: readonly Field[] | null }[] };
}>;

const REF = 'kind name ofType { kind name ofType { kind name ofType { kind name ofType { kind name } } } }';
const INTROSPECTION = `{ __schema { queryType { name } types { name fields {
  name args { name type { ${REF} } } type { ${REF} } } } } }`;

const named = (type: TypeRef): TypeRef => (type.ofType ? named(type.ofType) : type);

const nodesOf = (fields: readonly Field[] | undefined) => fields?.find(({ name }) => name === 'nodes');

/** Every list of GraphQL with all of its fields, and with what its rows have of others, lists too; how many queries that takes. */
export async function readLists(app: TestApp, organizationId: string): Promise<number> {
  const admin = adminClient(app, organizationId);
  const { __schema: schema } = await admin.query<Schema>(INTROSPECTION);
  const types = new Map(schema.types.map(({ name, fields }) => [name, fields ?? []]));
  const open = ({ args }: Field) => args.every(({ type }) => type.kind !== 'NON_NULL');

  const listed = (field: Field) => nodesOf(types.get(named(field.type).name ?? ''));
  const isObject = (field: Field) => named(field.type).kind === 'OBJECT';

  /** Of each row: what it is, and the objects that it has one of. */
  function fieldsOf(name: string, depth = 1): string {
    const fields = (types.get(name) ?? []).filter((field) => open(field) && !listed(field));
    const plain = fields.filter(({ type }) => !/OBJECT|INTERFACE|UNION/.test(named(type).kind));
    const inner = depth === 0 ? [] : fields.filter(isObject);
    return [
      ...plain.map((field) => field.name),
      ...inner.map((field) => `${field.name} { ${fieldsOf(named(field.type).name ?? '', depth - 1)} }`),
    ].join(' ');
  }

  let asked = 0;
  for (const field of (types.get(schema.queryType.name) ?? []).filter(open)) {
    const nodes = listed(field);
    if (nodes === undefined) continue;
    const row = named(nodes.type).name ?? '';
    const lists = (types.get(row) ?? []).filter((one) => open(one) && listed(one));
    const queries = [
      `${field.name}(first: 10) { nodes { ${fieldsOf(row)} } }`,
      ...lists.map((one) => {
        const inner = fieldsOf(named(listed(one)?.type ?? one.type).name ?? '', 0);
        return `${field.name}(first: 4) { nodes { ${one.name}(first: 10) { nodes { ${inner} } } } }`;
      }),
    ];
    for (const query of queries) await admin.query(`{ ${query} }`);
    asked += queries.length;
  }
  return asked;
}
