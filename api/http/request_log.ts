import type { NextFunction, Request, Response } from 'express';
import type { Logger } from 'pino';
import { createThrottle } from '../../engine/log.ts';
import type { Metrics } from './metrics.ts';
import { type RequestState, requestState } from './request_state.ts';

/** The path without its query, which may hold what should not be kept. */
function pathOnly(url: string): string {
  const end = url.indexOf('?');
  return end === -1 ? url : url.slice(0, end);
}

/** One line a request, without bodies and query strings, and its time for the metrics. */
export function logRequests(log: Logger, metrics: Metrics) {
  // While Postgres is down every request fails alike: one line every ten seconds says so.
  const throttle = createThrottle();

  function level({ endpoint }: RequestState, status: number): 'debug' | 'info' | 'error' | undefined {
    if (endpoint?.tag === 'System') return 'debug';
    if (status < 500) return 'info';
    return status !== 503 || throttle('503').log ? 'error' : undefined;
  }

  function finished(req: Request, res: Response): void {
    const state = requestState(req);
    const { endpoint, requestId, traceId } = state;
    const milliseconds = Number(process.hrtime.bigint() - state.startedAt) / 1e6;
    const route = endpoint?.path ?? 'unmatched';
    metrics.httpDuration.observe({ method: req.method, route, status: String(res.statusCode) }, milliseconds / 1e3);
    const chosen = level(state, res.statusCode);
    if (!chosen || !log.isLevelEnabled(chosen)) return;
    const line = {
      requestId,
      traceId,
      method: req.method,
      path: state.secretPath ?? pathOnly(req.originalUrl),
      operation: endpoint?.operationId,
      status: res.statusCode,
      ms: Math.round(milliseconds),
      // The client did not wait for the end of the response.
      aborted: res.writableFinished ? undefined : true,
    };
    log[chosen](line, 'request');
  }

  return (req: Request, res: Response, next: NextFunction): void => {
    res.on('close', () => finished(req, res));
    next();
  };
}
