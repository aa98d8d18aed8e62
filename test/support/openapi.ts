import type { Client } from './http.ts';
import type { Components, JsonSchema } from './schema_arbitrary.ts';

export type Parameter = Readonly<{
  name: string;
  in: 'path' | 'query' | 'header';
  required: boolean;
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

type Described = Readonly<{
  operationId: string;
  parameters?: readonly Parameter[];
  requestBody?: Readonly<{ content: Media }>;
  responses: Operation['responses'];
}>;
type Document = Readonly<{
  paths: Readonly<Record<string, Readonly<Record<string, Described>>>>;
  components: Readonly<{ schemas: Components }>;
}>;

/** All operations of the OpenAPI document that a running app serves, with the schemas they refer to. */
export async function readOpenApi(client: Client): Promise<{ operations: Operation[]; components: Components }> {
  const { paths, components } = (await (await client.fetch('/openapi.json')).json()) as Document;
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, one]): Operation => {
      const [media] = Object.entries(one.requestBody?.content ?? {});
      return {
        method: method.toUpperCase(),
        path,
        operationId: one.operationId,
        parameters: one.parameters ?? [],
        body: media && { mediaType: media[0], schema: media[1].schema },
        responses: one.responses,
      };
    }),
  );
  return { operations, components: components.schemas };
}
