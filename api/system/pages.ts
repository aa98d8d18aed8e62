import type { Response } from 'express';
import { Problem } from '../../engine/db/problem.ts';
import { codeVersion } from '../../engine/db/schema/version.ts';
import { SESSION_PATH } from '../http/auth/admin_session.ts';
import { type Endpoint, endpoint } from '../http/endpoint.ts';
import { homePage, homePolicy } from './home.ts';
import { createReadiness } from './readiness.ts';

/** A page that is asked for with a slash too many: relative, so that it also works below a path of a proxy. */
function redirect(res: Response, location: string): void {
  res.status(308).set('Location', location).end();
}

/** Pages for a browser, which belong to no interface. */
export function pageEndpoints(): readonly Endpoint[] {
  const checkReady = createReadiness();
  const shared = { method: 'get', audience: 'public', tag: 'System' } as const;
  const html = { stream: true, mediaType: 'text/html', description: 'A page.' } as const;
  return [
    endpoint({
      ...shared,
      path: '/',
      operationId: 'getHome',
      summary: 'What runs, and where to go on',
      response: html,
      errors: [{ status: 404, code: 'not_found', when: 'the client takes no HTML' }],
      async handler({ services, req, res }) {
        if (!req.accepts('html')) throw new Problem(404, 'not_found', 'There is nothing at this path.');
        const state = await checkReady(services, await codeVersion()).catch((error: unknown) => {
          if (error instanceof Problem) return error.message;
          throw error;
        });
        res.set({ 'Content-Security-Policy': homePolicy, 'Cache-Control': 'no-store', Vary: 'Accept' }).type('html');
        res.end(homePage(req, services.config, state));
      },
    }),
    endpoint({
      ...shared,
      path: '/docs/',
      operationId: 'getDocsWithSlash',
      summary: 'The API documentation',
      response: html,
      handler: ({ res }) => redirect(res, '../docs'),
    }),
    endpoint({
      ...shared,
      path: `${SESSION_PATH}/`,
      operationId: 'getAdminExplorerWithSlash',
      summary: 'The explorer of the administration',
      response: html,
      handler: ({ res }) => redirect(res, '../admin'),
    }),
  ];
}
