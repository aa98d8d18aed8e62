import { randomUUID } from 'node:crypto';
import type { NextFunction, Request, Response } from 'express';
import type { Logger } from 'pino';
import type { Endpoint } from './endpoint.ts';
import type { HttpTiming } from './timing.ts';

/** What is known about a request from its first byte on. */
export type RequestState = {
  readonly requestId: string;
  readonly traceId: string | undefined;
  readonly startedAt: bigint;
  readonly timing: HttpTiming;
  /** With the ids of the request; made when it is first used, as most requests log one line alone. */
  readonly log: Logger;
  readonly signal: AbortSignal;
  /** Set when a route matched: the template for metrics, logs and error codes. */
  endpoint: Endpoint | undefined;
  /** Of a path that holds a secret: its template. */
  secretPath: string | undefined;
  /** True while the client waits for `100 Continue` before it sends its body. */
  awaitsContinue: boolean;
};

const states = new WeakMap<object, RequestState>();

/** @throws Error for a request that did not pass `trackRequests` */
export function requestState(req: Request): RequestState {
  const state = states.get(req);
  if (!state) throw new Error('the request has no state: trackRequests comes first');
  return state;
}

const requestIdFormat = /^[A-Za-z0-9._:-]{1,128}$/;
const traceparentFormat = /^(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(-.*)?$/;

/** The caller's `X-Request-Id` where it is safe to repeat, else a new one. */
export function requestIdOf(header: string | undefined): string {
  if (header !== undefined && requestIdFormat.test(header)) return header;
  const id = randomUUID();
  // Node joins it from twenty pieces, which would live as long as the request does: looked at once, it is one.
  requestIdFormat.test(id);
  return id;
}

/** The trace id of a valid W3C `traceparent`. Version 00 has exactly four fields; later versions may append some. */
export function traceIdOf(header: string | undefined): string | undefined {
  const match = header === undefined ? null : traceparentFormat.exec(header);
  if (!match || (header?.startsWith('00') && match[2] !== undefined)) return undefined;
  return match[1];
}

/** Thousands of event streams each keep one: what few of them use is made when it is asked for. */
class TrackedRequest implements RequestState {
  readonly requestId: string;
  readonly traceId: string | undefined;
  readonly startedAt = process.hrtime.bigint();
  readonly timing: HttpTiming;
  endpoint: Endpoint | undefined = undefined;
  secretPath: string | undefined = undefined;
  awaitsContinue: boolean;
  readonly #processLog: Logger;
  #log: Logger | undefined = undefined;
  #abort: AbortController | undefined = undefined;
  #gone = false;

  constructor(req: Request, log: Logger, timing: HttpTiming) {
    this.requestId = requestIdOf(req.get('x-request-id'));
    this.traceId = traceIdOf(req.get('traceparent'));
    // Node leaves the field undefined for servers without checkContinue; main.ts has one.
    this.awaitsContinue = /^100-continue$/i.test(req.get('expect') ?? '');
    this.#processLog = log;
    this.timing = timing;
  }

  get log(): Logger {
    const { requestId, traceId } = this;
    this.#log ??= this.#processLog.child(traceId ? { requestId, traceId } : { requestId });
    return this.#log;
  }

  get signal(): AbortSignal {
    if (!this.#abort) {
      this.#abort = new AbortController();
      if (this.#gone) this.leave();
    }
    return this.#abort.signal;
  }

  /** The client went away before the response was over. */
  leave(): void {
    this.#gone = true;
    this.#abort?.abort(new Error('the client went away'));
  }
}

/** Gives each request its ids, its log and a signal that aborts when the client goes away. */
export function trackRequests(log: Logger, timing: HttpTiming) {
  return (req: Request, res: Response, next: NextFunction): void => {
    const state = new TrackedRequest(req, log, timing);
    states.set(req, state);
    res.on('close', () => {
      if (!res.writableFinished) state.leave();
    });
    res.setHeader('X-Request-Id', state.requestId);
    next();
  };
}
