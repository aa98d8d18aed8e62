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
