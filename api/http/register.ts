import { STATUS_CODES } from 'node:http';
import type { Express, Request, Response } from 'express';
import { z } from 'zod';
import type { Database } from '../../engine/db/database.ts';
import { Problem } from '../../engine/db/problem.ts';
import type { Services } from '../services.ts';
import { adminAuthentication } from './auth/admin.ts';
import { type InternalAuthentication, internalAuthentication } from './auth/internal.ts';
import { checkMembership, ownerAuthentication } from './auth/owner.ts';
import { checkStream, readJson } from './body.ts';
import { type Caller, ownerName } from './caller.ts';
import { type ConcurrencyLimit, createConcurrencyLimit } from './concurrency_limit.ts';
import { takesIdempotencyKey } from './declared_errors.ts';
import { type Context, type Endpoint, isStream, type JsonResponse, type StreamResponse } from './endpoint.ts';
import { retryTransient, validationFailed } from './errors.ts';
import { type Commit, idempotencyKey, idempotently, idempotentlyOutside, type StoredResponse } from './idempotency.ts';
import type { Pagination } from './pagination.ts';
import { parseQuery } from './query.ts';
import { type Admitted, RequestContext } from './request_context.ts';
import { checkRequestHeaders } from './request_headers.ts';
import { type RequestState, requestState } from './request_state.ts';
import type { Responder } from './respond.ts';
import type { StreamBody } from './stream_body.ts';
import { settingsTokens, type TokenGuard, tokenGuard } from './token_guard.ts';
import { checkParts, storableIssue } from './validation.ts';

type Authentication = InternalAuthentication & {
  owner: ReturnType<typeof ownerAuthentication>;
  admin: ReturnType<typeof adminAuthentication>;
};

/** `/a/{b}/{c*}` in Express's spelling. */
export function expressPath(path: string): string {
  return path.replace(/\{(\w+)\*\}/g, '*$1').replace(/\{(\w+)\}/g, ':$1');
}

function rawParams(req: Request): Record<string, string> {
  const values: Record<string, string> = {};
  for (const [name, value] of Object.entries(req.params)) {
    values[name] = Array.isArray(value) ? value.join('/') : String(value);
  }
  return values;
}

/** Header values by name; what must not be sent twice was refused (api/http/request_headers.ts). */
function rawHeaders(req: Request, schema: z.ZodObject): Record<string, string | undefined> {
  return Object.fromEntries(Object.keys(schema.shape).map((name) => [name, req.get(name)]));
}

async function authenticate(
  authentication: Authentication,
  endpoint: Endpoint,
  services: Services,
  req: Request,
  organizationId: string | undefined,
): Promise<Caller> {
  if (endpoint.audience === 'owner') return authentication.owner(req, endpoint.ownerToken === true);
  if (endpoint.audience === 'worker') return authentication.worker(req);
  if (endpoint.audience === 'agent') return authentication.agent(req, services.db, organizationId);
  if (endpoint.audience === 'gateway') {
    return authentication.gateway(req, services.db, endpoint.byPassword === true);
  }
  if (endpoint.audience === 'admin') return authentication.admin(req);
  return { kind: 'public' };
}

const emptyBody = z.union([z.undefined(), z.strictObject({})]);

async function parsedBody(
  endpoint: Endpoint,
  req: Request,
  res: Response,
  state: RequestState,
  guard: TokenGuard | undefined,
): Promise<unknown> {
  if (isStream<StreamBody>(endpoint.body)) {
    checkStream(req, endpoint.body);
    return undefined;
  }
  const value = await readJson(req, res, state);
  await guard?.checkBody(value);
  if (endpoint.body === undefined) {
    checkParts({ body: [emptyBody, value] });
    return undefined;
  }
  // No body at all is checked as an empty object, so that each missing field is named.
  return checkParts({ body: [endpoint.body as z.ZodType, value === undefined ? {} : value] }).body;
}

function storedResponse(endpoint: Endpoint, result: unknown): StoredResponse {
  const response = endpoint.response as JsonResponse;
  const statusCode = response.status ?? 200;
  const message = response.message ?? STATUS_CODES[statusCode] ?? 'OK';
  if (!response.list) return { statusCode, body: { message, data: result } };
  const { data, pagination } = result as { data: unknown; pagination: Pagination };
  return { statusCode, body: { message, data, pagination } };
}

type Shared = Readonly<{
  services: Services;
  authentication: Authentication;
  responder: Responder;
  costlyCalls: ConcurrencyLimit;
  /** Tokens of the settings. */
  settings: readonly string[];
}>;

/** Who calls, and what: the request after every check. @throws Problem 400, 401, 403, 404, 408, 413, 415 */
async function admit(
  endpoint: Endpoint,
  { services, authentication, settings }: Shared,
  req: Request,
  res: Response,
): Promise<Admitted> {
  const state = requestState(req);
  const pathValues = rawParams(req);
  const named = pathValues['organizationId'];
  const caller = await authenticate(authentication, endpoint, services, req, named);
  const organizationId = caller.kind === 'gateway' ? caller.organizationId : named;

  const rawQuery = endpoint.anyQuery ? {} : parseQuery(req.url);
  const issue = storableIssue({ ...pathValues, ...rawQuery });
  if (issue) throw validationFailed([issue]);
  const guard = tokenGuard(settings, endpoint, req, { ...pathValues, organizationId }, services.db);
  await guard?.checkUrl({ ...pathValues, ...rawQuery, 'Idempotency-Key': req.get('idempotency-key') });
  const parts = checkParts({
    params: [endpoint.params, pathValues],
    query: [endpoint.query, rawQuery],
    headers: [endpoint.headers, rawHeaders(req, endpoint.headers)],
  });
  if (caller.kind === 'owner' && organizationId !== undefined && endpoint.membership !== 'none') {
    await retryTransient(() => checkMembership(services.db, caller, organizationId, endpoint.writes));
  }
  const key = takesIdempotencyKey(endpoint) ? idempotencyKey(req) : undefined;
  const body = await parsedBody(endpoint, req, res, state, guard);
  if (typeof endpoint.ownerToken === 'function' && endpoint.ownerToken(body)) await authentication.owner(req, true);
  if (guard && endpoint.continued) {
    const continued = endpoint.continued({ ...parts, body, db: services.db });
    if (continued) await guard.checkContinued(continued.field, continued.text, continued.before);
  }
  return { ...parts, caller, organizationId, key, body, guard };
}

const over = (): void => {};

/** Runs the handler and responds: streamed, under an idempotency key, or plainly. */
async function respond(
  endpoint: Endpoint,
  responder: Responder,
  admitted: Admitted,
  base: RequestContext,
  database: Database,
) {
  const { req, res } = base;
  const { key, caller, organizationId, body } = admitted;
  const responseOf = (data: unknown) => storedResponse(endpoint, data);
  const handle = async (db: Context['db'], commit?: Commit): Promise<StoredResponse> =>
    responseOf(await endpoint.handler(base.within(db, commit && ((change) => commit(change, responseOf)))));

  /** An external handler would read and copy everything again: once it commits, the commit alone is repeated. */
  const external = (commit: Commit): Promise<StoredResponse> => {
    let committing = false;
    const last: Commit = (change, ofChange) => {
      committing = true;
      return retryTransient(() => commit(change, ofChange));
    };
    return retryTransient(
      () => handle(database, last),
      () => (committing ? AbortSignal.abort() : base.signal),
    );
  };

  if (isStream(endpoint.response)) {
    await endpoint.handler(base);
    if (!res.headersSent) throw new Error(`${endpoint.operationId} sent no response`);
    // A stream that stays open keeps its request, but not the way on through the routes.
    req.next = over;
    return;
  }
  if (key !== undefined) {
    const request = { req, caller, key, organizationId, body };
    const kept = await (endpoint.external
      ? idempotentlyOutside(database, request, base.signal, external)
      : idempotently(database, request, base.signal, handle));
    if (kept.replayed) res.setHeader('Idempotency-Replayed', 'true');
    responder.success(req, res, kept.statusCode, kept.body);
    return;
  }
  const once = () => handle(database);
  const run = (): Promise<StoredResponse> => {
    if (endpoint.external) return external((change) => change(database));
    // A streamed body is read once: there is nothing to repeat with.
    return isStream(endpoint.body) ? once() : retryTransient(once, () => base.signal);
  };
  const { statusCode, body: sent } = await run();
  responder.success(req, res, statusCode, sent);
}

function isCostly({ costly }: Endpoint, query: Context['query']): boolean {
  return typeof costly === 'function' ? costly(query) : costly === true;
}

/** The database in the shares of who calls and of the organization. */
function shareOf(db: Database, { response }: Endpoint, { caller, organizationId }: Admitted): Database {
  // Event streams stay open, and what they read they read for all.
  if (isStream<StreamResponse>(response) && response.mediaType === 'text/event-stream') return db;
  const name = ownerName(caller);
  const ofCaller = name === undefined ? db : db.by(name);
  return organizationId === undefined ? ofCaller : ofCaller.of(organizationId);
}

function createHandler(endpoint: Endpoint, shared: Shared) {
  const { services, responder, costlyCalls } = shared;
  return async function handle(req: Request, res: Response): Promise<void> {
    const state = requestState(req);
    state.endpoint = endpoint;
    checkRequestHeaders(req, res);
    const admitted = await admit(endpoint, shared, req, res);
    const { organizationId, query } = admitted;
    const db = shareOf(services.db, endpoint, admitted);
    const context = new RequestContext({ endpoint, services, db, state, admitted, req, res });
    const work = () => respond(endpoint, responder, admitted, context, db);
    await (organizationId !== undefined && isCostly(endpoint, query) ? costlyCalls.run(organizationId, work) : work());
  };
}

/** Before all routes: a secret is none the less one where the rest of its path is wrong, so that no route matches. */
function hideSecrets(app: Express, endpoints: readonly Endpoint[]): void {
  const templates = new Set(endpoints.flatMap(({ secretPath, path }) => (secretPath ? [path] : [])));
  for (const template of templates) {
    app.use(template.slice(0, template.indexOf('/{')), (req, _res, next) => {
      requestState(req).secretPath = template;
      next();
    });
  }
}

/** Routes for all endpoints, then the responses for paths and methods that are not there. */
export function registerEndpoints(
  app: Express,
  endpoints: readonly Endpoint[],
  services: Services,
  responder: Responder,
): void {
  const { config } = services;
  const authentication = {
    ...internalAuthentication(config),
    owner: ownerAuthentication(config),
    admin: adminAuthentication(config),
  };
  const costlyCalls = createConcurrencyLimit(config.databasePoolSize);
  const shared = { services, authentication, responder, costlyCalls, settings: settingsTokens(config) };
  hideSecrets(app, endpoints);
  for (const endpoint of endpoints) {
    app[endpoint.method](expressPath(endpoint.path), createHandler(endpoint, shared));
  }
  app.use(notFound(endpoints));
}

function pathMatcher(path: string): RegExp {
  const pattern = path
    .split(/(\{\w+\*?\})/)
    .map((part) =>
      part.startsWith('{') ? (part.includes('*') ? '.+' : '[^/]+') : part.replace(/[.*+?^$()[\]\\|]/g, '\\$&'),
    );
  return new RegExp(`^${pattern.join('')}$`);
}

/** 404 for unknown paths, 405 with `Allow` for known ones. */
function notFound(endpoints: readonly Endpoint[]) {
  const known = endpoints.map((endpoint) => ({ method: endpoint.method, matches: pathMatcher(endpoint.path) }));
  return (req: Request, res: Response): never => {
    checkRequestHeaders(req, res);
    // Throws for broken percent-encoding, which no route would have matched.
    decodeURIComponent(req.path);
    const methods = new Set<string>();
    for (const { method, matches } of known) {
      if (!matches.test(req.path)) continue;
      methods.add(method.toUpperCase());
      if (method === 'get') methods.add('HEAD');
    }
    if (methods.size === 0)
      throw new Problem(
        404,
        'not_found',
        'There is nothing at this path: /openapi.json lists every call, /docs in a browser.',
      );
    const allow = [...methods].sort().join(', ');
    throw new Problem(405, 'method_not_allowed', `This path takes ${allow}.`, undefined, { Allow: allow });
  };
}
