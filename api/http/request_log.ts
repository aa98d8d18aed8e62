import type { IncomingMessage } from 'node:http';
import type { NextFunction, Request, Response } from 'express';
import type { Logger } from 'pino';
import { pinoHttp } from 'pino-http';
import { createThrottle } from '../../engine/log.ts';
import type { Metrics } from './metrics.ts';
import { requestState } from './request_state.ts';

function pathOnly(url: string | undefined): string {
  return (url ?? '').split('?')[0] ?? '';
}

/** One line a request, without bodies and query strings, and its time for the metrics. */
export function logRequests(log: Logger, metrics: Metrics) {
  // While Postgres is down every request fails alike: one line every ten seconds says so.
  const throttle = createThrottle();
  const lines = pinoHttp<Request, Response>({
    logger: log,
    quietReqLogger: true,
    genReqId: (req) => requestState(req).requestId,
    serializers: {
      req: (req: { raw: IncomingMessage }) => ({ method: req.raw.method, path: pathOnly(req.raw.url) }),
      res: (res: { statusCode: number }) => ({ statusCode: res.statusCode }),
    },
    customProps: (req) => {
      const { traceId, endpoint } = requestState(req);
      return { ...(traceId ? { traceId } : {}), ...(endpoint ? { operation: endpoint.operationId } : {}) };
    },
    customAttributeKeys: { reqId: 'requestId' },
    // The error itself is logged where it is mapped, with its cause.
    customErrorMessage: () => 'request completed',
    customErrorObject: (_req, _res, _error, { err: _made, ...line }) => line,
    customLogLevel(req, res) {
      if (requestState(req).endpoint?.tag === 'System') return 'debug';
      if (res.statusCode < 500) return 'info';
      return res.statusCode !== 503 || throttle('503').log ? 'error' : 'silent';
    },
  });

  return (req: Request, res: Response, next: NextFunction): void => {
    res.once('close', () => {
      const { endpoint, startedAt } = requestState(req);
      const seconds = Number(process.hrtime.bigint() - startedAt) / 1e9;
      const route = endpoint?.path ?? 'unmatched';
      metrics.httpDuration.observe({ method: req.method, route, status: String(res.statusCode) }, seconds);
    });
    lines(req, res);
    next();
  };
}
