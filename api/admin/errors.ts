import { GraphQLError } from 'graphql';
import { isSafeError } from 'postgraphile/grafast';
import { findPostgresError } from '../../engine/db/errors.ts';
import { Problem } from '../../engine/db/problem.ts';
import { invalid, toProblem } from '../http/errors.ts';
import type { Report } from './context.ts';
import { STATEMENT_TIMEOUT_MS } from './timeouts.ts';

const tooSlow = () =>
  new Problem(
    503,
    'query_timeout',
    `The query took longer than ${STATEMENT_TIMEOUT_MS / 1000} seconds. Ask for shorter pages, or for one organization.`,
  );

/** A value that its column cannot be compared with, such as a time that there is not. */
const isWrongValue = (state: string | undefined) => state !== undefined && /^22(?!021|P05)/.test(state);

/** What the filters say of a null, by an error that carries no sign but its text. */
const NULL_IN_FILTER = 'Null literals are forbidden in filter argument input.';

function problemOf(error: GraphQLError): { problem: Problem; unforeseen: boolean } {
  const cause = error.originalError;
  // Without a cause it is GraphQL's own word about the request.
  if (!cause || cause instanceof GraphQLError || isSafeError(cause)) {
    return { problem: invalid('query', cause?.message ?? error.message, 'graphql_invalid'), unforeseen: false };
  }
  if (cause.message === NULL_IN_FILTER) {
    const message = 'compares with null: leave out what is not to be filtered by';
    return { problem: invalid('filter', message, 'null_in_filter'), unforeseen: false };
  }
  const state = findPostgresError(cause)?.code;
  if (state === '57014') return { problem: tooSlow(), unforeseen: true };
  if (isWrongValue(state)) {
    return { problem: invalid('query', 'holds a value of the wrong form', 'invalid_value'), unforeseen: false };
  }
  return toProblem(cause);
}

export type ShownError = Readonly<{
  message: string;
  locations?: GraphQLError['locations'];
  path?: GraphQLError['path'];
  extensions: Readonly<Record<string, unknown>>;
}>;

/** One error as a client sees it: its code and the request's id, and nothing of what went wrong inside. */
export function shownError(error: GraphQLError, requestId: string, report: Report): ShownError {
  const { problem, unforeseen } = problemOf(error);
  if (unforeseen) report(error.originalError ?? error, problem.status);
  // What several issues are about is for the whole of them to say.
  const [issue, ...others] = (problem.code === 'validation_failed' && problem.issues) || [];
  return {
    message: issue && others.length === 0 ? issue.message : problem.message,
    ...(error.locations ? { locations: error.locations } : {}),
    ...(error.path ? { path: error.path } : {}),
    extensions: {
      code: problem.code,
      statusCode: problem.status,
      ...(problem.issues?.length ? { issues: problem.issues } : {}),
      requestId,
    },
  };
}
