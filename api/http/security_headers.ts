import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import type { NextFunction, Request, Response } from 'express';
import helmet from 'helmet';

/**
 * The API serves no page but the documentation, whose assets are local; nothing may be framed, sniffed or sent to
 * others. TLS belongs to the proxy in front, and so does the decision to insist on it.
 */
function protect() {
  return helmet({
    strictTransportSecurity: false,
    // For browsers of the past, or plug-ins; nothing here needs them.
    originAgentCluster: false,
    xDnsPrefetchControl: false,
    xDownloadOptions: false,
    xPermittedCrossDomainPolicies: false,
    xXssProtection: false,
    contentSecurityPolicy: {
      useDefaults: false,
      directives: {
        defaultSrc: ["'none'"],
        baseUri: ["'none'"],
        formAction: ["'none'"],
        frameAncestors: ["'none'"],
      },
    },
  });
}

/** Helmet makes them anew for each request, though they never differ: they are taken from one, and set on all. */
export function securityHeaders() {
  const req = new IncomingMessage(new Socket());
  const one = new ServerResponse(req);
  protect()(req, one, (error?: unknown) => {
    if (error) throw error;
  });
  const headers = Object.entries(one.getHeaders()).map(([name, value]) => [name, String(value)] as const);
  return (_req: Request, res: Response, next: NextFunction): void => {
    for (const [name, value] of headers) res.setHeader(name, value);
    next();
  };
}
