import type { Request, Response } from 'express';
import type { Logger } from 'pino';
import type { Database } from '../../engine/db/database.ts';
import type { Problem } from '../../engine/db/problem.ts';
import type { Services } from '../services.ts';
import { openStreamedBody } from './body.ts';
import { decisionOf } from './decision.ts';
import { type Context, type Endpoint, isStream } from './endpoint.ts';
import type { RequestState } from './request_state.ts';
import type { StreamBody, StreamedBody } from './stream_body.ts';
import type { TokenGuard } from './token_guard.ts';

export type Admitted = Pick<Context, 'params' | 'query' | 'headers' | 'body' | 'caller'> &
  Readonly<{ organizationId: string | undefined; key: string | undefined; guard: TokenGuard | undefined }>;

type Call = Readonly<{
  endpoint: Endpoint;
  services: Services;
  /** Of the organization that the call is about. */
  db: Database;
  state: RequestState;
  admitted: Admitted;
  req: Request;
  res: Response;
}>;

const outside = (name: string) => ({
  get(): never {
    throw new Error(`${name} is used in a transaction: the endpoint has to be declared external`);
  },
});
const alone = new WeakMap<Services, Services>();

/** The services of a handler that runs in a transaction: without those that its connection would wait for. */
function databaseAlone(services: Services): Services {
  const made: Services =
    alone.get(services) ??
    Object.create(services, { storage: outside('storage'), evaluateAcceptance: outside('evaluateAcceptance') });
  alone.set(services, made);
  return made;
}

/**
 * What a handler is given. `log` and `signal` are in the prototype and the functions are fields: V8 makes a function that is
 * assigned to a property (`this.openBody = …`), or is an accessor of a literal, for the old generation. Each would keep what its
 * request has made, 5 to 20 KB, alive until the next full collection.
 */
export class RequestContext implements Context {
  readonly params: Context['params'];
  readonly query: Context['query'];
  readonly headers: Context['headers'];
  readonly body: unknown;
  readonly caller: Context['caller'];
  readonly decision: Context['decision'];
  readonly db: Context['db'];
  readonly services: Services;
  readonly req: Request;
  readonly res: Response;
  readonly #call: Call;
  readonly #commit: Context['commit'] | undefined;

  constructor(call: Call, db: Context['db'] = call.db, commit?: Context['commit']) {
    const { endpoint, services, state, admitted, req, res } = call;
    this.params = admitted.params;
    this.query = admitted.query;
    this.headers = admitted.headers;
    this.body = admitted.body;
    this.caller = admitted.caller;
    this.decision = decisionOf(endpoint.decision, { ...admitted, requestId: state.requestId });
    this.db = db;
    this.services = db === call.db ? services : databaseAlone(services);
    this.req = req;
    this.res = res;
    this.#call = call;
    this.#commit = commit;
  }

  readonly openBody = (): StreamedBody => {
    const { endpoint, state, req, res, admitted } = this.#call;
    if (!isStream<StreamBody>(endpoint.body)) throw new Error(`${endpoint.operationId} has no stream body`);
    return openStreamedBody(req, res, state, endpoint.body, admitted.guard?.search());
  };

  readonly searchTokens = (): ((chunk: Buffer) => Problem | undefined) =>
    this.#call.admitted.guard?.search() ?? (() => undefined);

  readonly commit = <T>(change: (db: Context['db']) => Promise<T>): Promise<T> =>
    this.#commit ? this.#commit(change) : change(this.db);

  get log(): Logger {
    return this.#call.state.log;
  }

  get signal(): AbortSignal {
    return this.#call.state.signal;
  }

  /** The same call by another connection, in its transaction, or with another way to commit its last change. */
  within(db: Context['db'], commit?: Context['commit']): RequestContext {
    return db === this.db && !commit ? this : new RequestContext(this.#call, db, commit);
  }
}
