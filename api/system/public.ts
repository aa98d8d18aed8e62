import { z } from 'zod';
import { Problem } from '../../engine/db/problem.ts';
import { codeVersion } from '../../engine/db/schema/version.ts';
import { metricsAccess } from '../../engine/monitoring/access.ts';
import { receiptKeyEndpoints } from '../actions/public.ts';
import { type EncodedContent, encodeContent, once, sendEncoded } from '../http/encoded.ts';
import { type Endpoint, endpoint } from '../http/endpoint.ts';
import { openApi } from '../http/openapi/document.ts';
import { atPort, docsAsset, docsFiles, docsPage, docsPolicy, docsTypes } from './docs.ts';
import { createReadiness } from './readiness.ts';

/** Health, metrics and the description of the `described` endpoints and of these. */
export function systemEndpoints(described: readonly Endpoint[]): readonly Endpoint[] {
  let needed: number | undefined;
  const checkReady = createReadiness();
  let made: ReturnType<typeof once<EncodedContent>> | undefined;
  // Made when it is first asked for: it takes a part of a second, and most processes are never asked.
  const document = (port: number) => {
    made ??= once(() => encodeContent(atPort(JSON.stringify(openApi([...described, ...system])), port)));
    return made();
  };

  const system = [
    endpoint({
      method: 'get',
      path: '/healthz',
      audience: 'public',
      tag: 'System',
      operationId: 'getHealth',
      summary: 'Check that the process is alive',
      description: 'Says nothing about the database; see `/readyz` for that.',
      response: { data: z.object({ status: z.literal('ok') }) },
      example: { data: { status: 'ok' } },
      handler: () => ({ status: 'ok' as const }),
    }),
    endpoint({
      method: 'get',
      path: '/readyz',
      audience: 'public',
      tag: 'System',
      operationId: 'getReadiness',
      summary: 'Check that the process can serve requests',
      description:
        'Ready means: the database is reachable and migrated, notifications arrive, and the file storage was reached at least once. If the storage fails later or is full, `storage` says so, and the process stays ready.',
      response: {
        data: z.object({
          status: z.literal('ready'),
          schemaVersion: z.int().describe('Number of the latest migration in the database.'),
          storage: z.enum(['reachable', 'full', 'unreachable']),
        }),
      },
      example: { data: { status: 'ready', schemaVersion: 201, storage: 'reachable' } },
      async handler({ services }) {
        needed ??= await codeVersion();
        return { status: 'ready' as const, ...(await checkReady(services, needed)) };
      },
    }),
    endpoint({
      method: 'get',
      path: '/metrics',
      audience: 'public',
      tag: 'System',
      operationId: 'getMetrics',
      summary: 'Get metrics in the Prometheus text format',
      description:
        'Of this process, and how much work waits. With `METRICS_TOKENS` one of them is the bearer token; without, only requests of the same machine are served, and not through a proxy. `METRICS_PORT` serves them as well.',
      response: { stream: true, mediaType: 'text/plain', description: 'The metrics.' },
      example: { data: '# TYPE runner_pull_waiters gauge\nrunner_pull_waiters 0\n' },
      errors: [{ status: 401, code: 'metrics_unauthorized', when: 'the token is missing or invalid, or none is set' }],
      async handler({ services, req, res }) {
        const refused = metricsAccess(services.config.metricsTokens, { ownPort: false })(req);
        if (refused !== undefined) {
          const challenge = { 'WWW-Authenticate': 'Bearer realm="business-runner metrics"' };
          throw new Problem(401, 'metrics_unauthorized', refused, undefined, challenge);
        }
        const { registry } = services.metrics;
        res.set({ 'Content-Type': registry.contentType, 'Cache-Control': 'no-store' }).end(await registry.metrics());
      },
    }),
    endpoint({
      method: 'get',
      path: '/openapi.json',
      audience: 'public',
      tag: 'System',
      operationId: 'getOpenApi',
      summary: 'Get the OpenAPI document',
      description: 'This document. It changes only with the version of the service: send `If-None-Match`.',
      response: {
        stream: true,
        mediaType: 'application/json',
        description: 'OpenAPI 3.1, compressed if `Accept-Encoding` permits it.',
        schema: z.looseObject({ openapi: z.string() }),
      },
      example: { data: { openapi: '3.1.0', info: { title: 'Business Runner', version: '0.1.0' }, paths: {} } },
      async handler({ services, req, res }) {
        sendEncoded(req, res, await document(services.config.port), 'application/json; charset=utf-8');
      },
    }),
    endpoint({
      method: 'get',
      path: '/docs',
      audience: 'public',
      tag: 'System',
      operationId: 'getDocs',
      summary: 'Open the API documentation',
      description: 'This document as a page, to read and to try out.',
      response: { stream: true, mediaType: 'text/html', description: 'A page for browsers.' },
      handler({ services, res }) {
        res.set('Content-Security-Policy', docsPolicy).type('html').end(atPort(docsPage, services.config.port));
      },
    }),
    endpoint({
      method: 'get',
      path: '/docs/{file}',
      audience: 'public',
      tag: 'System',
      operationId: 'getDocsFile',
      summary: 'Get a file of the API documentation',
      description: 'Scripts and styles of the page.',
      params: { file: z.enum(docsFiles).describe('The name of the file.') },
      response: { stream: true, mediaType: 'application/octet-stream', description: 'The file.' },
      async handler({ params: { file }, req, res }) {
        sendEncoded(req, res, await docsAsset(file), docsTypes[file]);
      },
    }),
    ...receiptKeyEndpoints(),
  ] as const satisfies readonly Endpoint[];
  return system;
}
