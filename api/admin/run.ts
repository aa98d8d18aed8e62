import { type DocumentNode, GraphQLError, getOperationAST, parse, specifiedRules, validate } from 'graphql';
import { LRUCache } from 'lru-cache';
import { createBoundedQueue, QueueRefusedError } from '../../engine/bounded_queue.ts';
import { DatabaseUnavailableError } from '../../engine/db/errors.ts';
import { Problem } from '../../engine/db/problem.ts';
import { invalid, serviceUnavailable } from '../http/errors.ts';
import type { AdminContext, Report } from './context.ts';
import { type ShownError, shownError } from './errors.ts';
import { isNestedTooDeep, limited, MAX_QUERY_LENGTH, MAX_TOKENS } from './limits.ts';
import { buildAdminSchema, CONNECTIONS } from './schema/build.ts';
import { isLonger, MAX_BYTES, tooLarge } from './schema/reading.ts';
import type { AdminTransitions } from './transitions.ts';

export type GraphqlRequest = Readonly<{
  query: string;
  operationName: string | undefined;
  variables: Readonly<Record<string, unknown>>;
}>;

/** 400 for what was not executed at all; 200 with `data`, and `errors` where parts of it failed. */
export type GraphqlResponse = Readonly<{
  status: number;
  body: Readonly<{ data?: unknown; errors?: readonly ShownError[] }>;
}>;

export type Runner = Readonly<{
  /**
   * Once `gone` is aborted, nothing more is begun.
   * @throws Problem 503 when it takes longer than a request may, DatabaseUnavailableError when too many wait
   */
  run(request: GraphqlRequest, caller: AdminContext, report: Report, gone?: AbortSignal): Promise<GraphqlResponse>;
  close(): Promise<void>;
}>;

const MAX_ERRORS = 20;
/** Queries that stay parsed and checked, so that one which is sent again is not planned again. */
const CACHED_QUERIES = 100;
const CACHED_PAGES = 4;

/** Requests that may wait for their turn, and how long; further ones fail at once. */
const MAX_WAITING = 64;
const WAIT_TIMEOUT_MS = 10_000;

type Checked = Readonly<{ document: DocumentNode; pages: LRUCache<string, DocumentNode> }>;

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

/** A signal that aborts when the client is gone or the time is over, and the promise that fails with it. */
function lifetime(milliseconds: number, gone: AbortSignal | undefined) {
  const controller = new AbortController();
  const ended = Promise.withResolvers<never>();
  // Nobody may be waiting any more.
  ended.promise.catch(() => undefined);
  function end(message: string) {
    const reason = serviceUnavailable(message);
    controller.abort(reason);
    ended.reject(reason);
  }
  const leave = () => end('The client has left.');
  const timer = setTimeout(
    () => end(`The request took longer than ${milliseconds / 1000} seconds. Ask for less at once.`),
    milliseconds,
  );
  if (gone?.aborted) leave();
  gone?.addEventListener('abort', leave, { once: true });
  return {
    signal: controller.signal,
    ended: ended.promise,
    close() {
      clearTimeout(timer);
      gone?.removeEventListener('abort', leave);
    },
  };
}

/** None begins once the request is over; one that has begun is carried out. */
function until(signal: AbortSignal, transitions: AdminTransitions): AdminTransitions {
  const guarded = Object.entries(transitions).map(([name, decide]): [string, typeof decide] => [
    name,
    async (args, caller) => {
      signal.throwIfAborted();
      return decide(args, caller);
    },
  ]);
  return Object.fromEntries(guarded) as AdminTransitions;
}

type RunnerOptions = Readonly<{
  url: string;
  transitions: AdminTransitions;
  /** From its arrival to its response. */
  requestTimeoutMs: number;
  /** Of a statement. */
  responseTimeoutMs: number;
  onError: (error: Error) => void;
}>;

export async function createRunner(options: RunnerOptions): Promise<Runner> {
  const { transitions, requestTimeoutMs } = options;
  const queue = createBoundedQueue({
    concurrency: CONNECTIONS,
    maxWaiting: MAX_WAITING,
    waitTimeoutMs: WAIT_TIMEOUT_MS,
  });
  const { schema, execute, close } = await buildAdminSchema(options);

  /** @throws GraphQLError or Problem, or the array of errors that the validation found */
  function check(query: string): Checked {
    const document = parsed(query);
    const errors = validate(schema, document, specifiedRules, { maxErrors: MAX_ERRORS });
    if (errors.length > 0) throw errors;
    return { document, pages: new LRUCache({ max: CACHED_PAGES }) };
  }

  const checked = new LRUCache<string, Checked, string>({
    max: CACHED_QUERIES,
    memoMethod: (_key, _stale, { context: query }) => check(query),
  });

  /** The operation as it is executed. @throws as `check` */
  function admitted({ query, operationName, variables }: GraphqlRequest, caller: AdminContext): DocumentNode {
    const { document, pages } = checked.memo(JSON.stringify([operationName, query]), { context: query });
    const operation = getOperationAST(document, operationName);
    if (!operation) {
      throw new Problem(400, 'validation_failed', 'The query has no such operation, or several: send operationName.');
    }
    if (operation.operation === 'subscription')
      throw invalid('query', 'There are no subscriptions.', 'graphql_invalid');
    return limited(schema, document, operation, { variables, organizationId: caller.organizationId }, pages);
  }

  /** Keeps its place while it works, even if nobody waits for the response any more. */
  async function executed(request: GraphqlRequest, document: DocumentNode, caller: AdminContext, signal: AbortSignal) {
    try {
      return await queue.run(async () => {
        signal.throwIfAborted();
        const result = await execute({ ...request, document }, caller, until(signal, transitions), signal);
        if (Symbol.asyncIterator in result) throw new Error('the schema has nothing that is sent in parts');
        return result;
      });
    } catch (error) {
      if (error instanceof QueueRefusedError) throw new DatabaseUnavailableError(`no connection: ${error.message}`);
      throw error;
    }
  }

  async function run(
    request: GraphqlRequest,
    caller: AdminContext,
    report: Report,
    gone?: AbortSignal,
  ): Promise<GraphqlResponse> {
    const shown = (error: unknown) => shownError(asGraphQLError(error), caller.requestId, report);
    const refused = (error: unknown): GraphqlResponse => ({ status: 400, body: { errors: [error].flat().map(shown) } });
    let document: DocumentNode;
    try {
      document = admitted(request, caller);
    } catch (error) {
      return refused(error);
    }
    const { signal, ended, close: over } = lifetime(requestTimeoutMs, gone);
    try {
      const { data, errors } = await Promise.race([executed(request, document, caller, signal), ended]);
      // No refusal: a decision in it has been carried out.
      if (isLonger(data, MAX_BYTES)) return { status: 200, body: { errors: [shown(tooLarge())], data: null } };
      // Variables that do not fit are found by the execution, which then has not begun.
      const status = data === undefined ? 400 : 200;
      return {
        status,
        body: { ...(errors ? { errors: errors.map(shown) } : {}), ...(data === undefined ? {} : { data }) },
      };
    } finally {
      over();
    }
  }

  return { run, close };
}
