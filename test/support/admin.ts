import { ClientError, GraphQLClient } from 'graphql-request';
import { ADMIN_TOKEN, type TestApp } from './app.ts';

export const GRAPHQL_PATH = '/internal/admin/graphql';

export type Row = Readonly<Record<string, unknown>>;
type Variables = Readonly<Record<string, unknown>>;

/** A refusal of a GraphQL request: the status of its response, and the errors in it. */
export type RefusedQuery = Readonly<{
  status: number;
  data: unknown;
  errors: readonly Readonly<{
    message: string;
    path?: readonly (string | number)[];
    extensions: Readonly<{ code: string; statusCode: number; requestId: string; issues?: { code: string }[] }>;
  }>[];
}>;

/** A real GraphQL client, signed in as the administrator of the tests; with an organization, about that one alone. */
export function adminClient(app: Pick<TestApp, 'url'>, organizationId?: string) {
  const client = new GraphQLClient(new URL(GRAPHQL_PATH, app.url).href, {
    headers: {
      authorization: `Bearer ${ADMIN_TOKEN}`,
      ...(organizationId === undefined ? {} : { 'x-organization-id': organizationId }),
    },
  });
  const query = <T = Record<string, Row>>(text: string, variables: Variables = {}): Promise<T> =>
    client.request<T>(text, variables);

  return {
    query,
    /** The refusal of a query that has to be refused. */
    async refused(text: string, variables: Variables = {}): Promise<RefusedQuery> {
      try {
        const data = await query(text, variables);
        throw new Error(`the query was expected to be refused: ${JSON.stringify(data)}`);
      } catch (error) {
        if (!(error instanceof ClientError)) throw error;
        const { status, data, errors } = error.response;
        return { status, data, errors: (errors ?? []) as unknown as RefusedQuery['errors'] };
      }
    },
  };
}

export type AdminClient = ReturnType<typeof adminClient>;
