import type { Client } from './http.ts';
import type { Components, JsonSchema } from './schema_arbitrary.ts';

export type Parameter = Readonly<{
  name: string;
  in: 'path' | 'query' | 'header';
  required?: boolean;
  schema: JsonSchema;
}>;

type Media = Readonly<Record<string, Readonly<{ schema: JsonSchema }>>>;

export type Operation = Readonly<{
  method: string;
  /** The template, `/organizations/{organizationId}`. */
  path: string;
  operationId: string;
  parameters: readonly Parameter[];
  /** Undefined: none is taken. */
  body: Readonly<{ mediaType: string; schema: JsonSchema }> | undefined;
  responses: Readonly<Record<string, Readonly<{ description: string; content?: Media }>>>;
}>;

type Reference = Readonly<{ $ref: string }>;
type Described = Readonly<{
  operationId: string;
  parameters?: readonly (Parameter | Reference)[];
  requestBody?: Readonly<{ content: Media }>;
  responses: Readonly<Record<string, Operation['responses'][string] | Reference>>;
}>;
type Document = Readonly<{
  paths: Readonly<Record<string, Readonly<Record<string, Described>>>>;
  components: Readonly<{ schemas: Components }>;
}>;

/** What a reference inside the document (`#/components/…`) leads to, with what stands beside it; anything else as it is. */
export function dereferenced<T extends object>(document: object, part: T | Reference): T {
  if (!('$ref' in part)) return part;
  const { $ref, ...beside } = part;
  let target: unknown = document;
  for (const key of $ref.replace('#/', '').split('/')) target = (target as Record<string, unknown> | undefined)?.[key];
  if (target === undefined) throw new Error(`${$ref} leads nowhere`);
  return { ...dereferenced(document, target as T | Reference), ...beside };
}

type Shaped = Readonly<{
  examples?: readonly unknown[];
  const?: unknown;
  allOf?: readonly Shaped[];
  items?: Shaped;
  properties?: Readonly<Record<string, Shaped>>;
  required?: readonly string[];
}>;

/** An example of what a schema describes, built as readers of the document do: from the examples of its parts. */
export function exampleOfSchema(document: object, schema: object): unknown {
  const { examples, allOf, items, properties, required, ...rest } = dereferenced(document, schema) as Shaped;
  if (examples) return examples[0];
  if ('const' in rest) return rest.const;
  if (allOf) return Object.assign({}, ...allOf.map((part) => exampleOfSchema(document, part)));
  if (items) return [exampleOfSchema(document, items)];
  const shown = Object.entries(properties ?? {}).filter(([name]) => required?.includes(name));
  return Object.fromEntries(shown.map(([name, property]) => [name, exampleOfSchema(document, property)]));
}

type Exampled = Readonly<{ schema: object; example?: unknown; examples?: Readonly<Record<string, object>> }>;

/** The examples of a body or response: its own, shared ones, or the one that its schema gives. */
export function examplesOf(document: object, { schema, example, examples }: Exampled): unknown[] {
  const shared = Object.values(examples ?? {}).map((one) => (dereferenced(document, one) as { value?: unknown }).value);
  if (example !== undefined) return [example, ...shared];
  return shared.length > 0 ? shared : [exampleOfSchema(document, schema)];
}

/** All operations of the OpenAPI document that a running app serves, with the schemas they refer to. */
export async function readOpenApi(client: Client): Promise<{ operations: Operation[]; components: Components }> {
  const document = (await (await client.fetch('/openapi.json')).json()) as Document;
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, one]): Operation => {
      const [media] = Object.entries(one.requestBody?.content ?? {});
      return {
        method: method.toUpperCase(),
        path,
        operationId: one.operationId,
        parameters: (one.parameters ?? []).map((parameter) => dereferenced(document, parameter)),
        body: media && { mediaType: media[0], schema: media[1].schema },
        responses: Object.fromEntries(
          Object.entries(one.responses).map(([status, response]) => [status, dereferenced(document, response)]),
        ),
      };
    }),
  );
  return { operations, components: document.components.schemas };
}
