import { randomUUID } from 'node:crypto';
import type { NextFunction, Request, Response } from 'express';
import type { Logger } from 'pino';
import type { Endpoint } from './endpoint.ts';

/** What is known about a request from its first byte on. */
export type RequestState = {
  readonly requestId: string;
  readonly traceId: string | undefined;
  readonly startedAt: bigint;
  /** With the ids of the request; made when it is first used, as most requests log one line alone. */
  readonly log: Logger;
  readonly signal: AbortSignal;
  /** Set when a route matched: the template for metrics, logs and error codes. */
  endpoint: Endpoint | undefined;
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
  return header !== undefined && requestIdFormat.test(header) ? header : randomUUID();
}

/** The trace id of a valid W3C `traceparent`. Version 00 has exactly four fields; later versions may append some. */
export function traceIdOf(header: string | undefined): string | undefined {
  const match = header === undefined ? null : traceparentFormat.exec(header);
  if (!match || (header?.startsWith('00') && match[2] !== undefined)) return undefined;
  return match[1];
}

/** Gives each request its ids, its log and a signal that aborts when the client goes away. */
export function trackRequests(log: Logger) {
  return (req: Request, res: Response, next: NextFunction): void => {
    const requestId = requestIdOf(req.get('x-request-id'));
    const traceId = traceIdOf(req.get('traceparent'));
    const gone = new AbortController();
    res.once('close', () => {
      if (!res.writableFinished) gone.abort(new Error('the client went away'));
    });
    let child: Logger | undefined;
    states.set(req, {
      requestId,
      traceId,
      startedAt: process.hrtime.bigint(),
      get log() {
        child ??= log.child(traceId ? { requestId, traceId } : { requestId });
        return child;
      },
      signal: gone.signal,
      endpoint: undefined,
      // Node leaves the field undefined for servers without checkContinue; main.ts has one.
      awaitsContinue: /^100-continue$/i.test(req.get('expect') ?? ''),
    });
    res.setHeader('X-Request-Id', requestId);
    next();
  };
}
