import { type DocumentNode, GraphQLError, getOperationAST, parse, specifiedRules, validate } from 'graphql';
import { Problem } from '../../engine/db/problem.ts';
import { invalid } from '../http/errors.ts';
import type { AdminContext } from './context.ts';
import { type ShownError, shownError } from './errors.ts';
import type { Report } from './instance.ts';
import { type Kept, kept } from './kept.ts';
import { isNestedTooDeep, limited, MAX_QUERY_LENGTH, MAX_TOKENS } from './limits.ts';
import { buildAdminSchema } from './schema/build.ts';
import type { AdminTransitions } from './transitions.ts';

export type GraphqlRequest = Readonly<{
  query: string;
  operationName: string | undefined;
  variables: Readonly<Record<string, unknown>>;
}>;

/** 400 for what was not executed at all; 200 with `data`, and `errors` where parts of it failed. */
export type GraphqlAnswer = Readonly<{
  status: number;
  body: Readonly<{ data?: unknown; errors?: readonly ShownError[] }>;
}>;

export type Runner = Readonly<{
  run(request: GraphqlRequest, caller: AdminContext, report: Report): Promise<GraphqlAnswer>;
  close(): Promise<void>;
}>;

const MAX_ERRORS = 20;
/** Queries that are kept parsed and checked, so that one which is sent again is not planned again. */
const KEPT_QUERIES = 100;
const KEPT_PAGES = 4;

type Checked = Readonly<{ document: DocumentNode; pages: Kept<DocumentNode> }>;

function parsed(query: string): DocumentNode {
  if (query.length > MAX_QUERY_LENGTH) {
    throw invalid('query', `has more than ${MAX_QUERY_LENGTH} characters`, 'too_long');
  }
  if (isNestedTooDeep(query)) throw invalid('query', 'has too many brackets inside of brackets', 'too_deep');
  return parse(query, { maxTokens: MAX_TOKENS });
}

/** An error before the execution, as if GraphQL had raised it. */
function asGraphQLError(error: unknown): GraphQLError {
  if (error instanceof GraphQLError) return error;
  const original = error instanceof Error ? error : new Error(String(error));
  return new GraphQLError(original.message, { originalError: original });
}

export async function createRunner(
  url: string,
  transitions: AdminTransitions,
  onError: (error: Error) => void,
): Promise<Runner> {
  const { schema, execute, close } = await buildAdminSchema(url, onError);

  const checked = kept<Checked>(KEPT_QUERIES);

  /** @throws GraphQLError or Problem, or the array of errors that the validation found */
  function check(query: string): Checked {
    const document = parsed(query);
    const errors = validate(schema, document, specifiedRules, { maxErrors: MAX_ERRORS });
    if (errors.length > 0) throw errors;
    return { document, pages: kept(KEPT_PAGES) };
  }

  /** The operation as it is executed. @throws as `check` */
  function admitted({ query, operationName, variables }: GraphqlRequest, caller: AdminContext): DocumentNode {
    const { document, pages } = checked.get(`${operationName ?? ''} ${query}`, () => check(query));
    const operation = getOperationAST(document, operationName);
    if (!operation) {
      throw new Problem(400, 'validation_failed', 'The query has no such operation, or several: send operationName.');
    }
    if (operation.operation === 'subscription')
      throw invalid('query', 'There are no subscriptions.', 'graphql_invalid');
    return limited(schema, document, operation, { variables, organizationId: caller.organizationId }, pages);
  }

  async function run(request: GraphqlRequest, caller: AdminContext, report: Report): Promise<GraphqlAnswer> {
    const shown = (error: unknown) => shownError(asGraphQLError(error), caller.requestId, report);
    let document: DocumentNode;
    try {
      document = admitted(request, caller);
    } catch (error) {
      return { status: 400, body: { errors: [error].flat().map(shown) } };
    }
    const result = await execute({ ...request, document }, caller, transitions);
    if (Symbol.asyncIterator in result) throw new Error('the schema has nothing that is answered in parts');
    const { data, errors } = result;
    // Variables that do not fit are found by the execution, which then has not begun.
    const status = data === undefined ? 400 : 200;
    return {
      status,
      body: { ...(errors ? { errors: errors.map(shown) } : {}), ...(data === undefined ? {} : { data }) },
    };
  }

  return { run, close };
}
