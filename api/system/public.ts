import path from 'node:path';
import { z } from 'zod';
import { codeVersion } from '../../engine/db/schema/version.ts';
import { type Endpoint, endpoint } from '../http/endpoint.ts';
import { openApi } from '../http/openapi/document.ts';
import { docsFiles, docsFolder, docsPage, docsPolicy, docsScript } from './docs.ts';
import { createReadiness } from './readiness.ts';

/** Health, metrics and the description of the `described` endpoints and of these. */
export function systemEndpoints(described: readonly Endpoint[]): readonly Endpoint[] {
  let document: string | undefined;
  let needed: number | undefined;
  const checkReady = createReadiness();

  const system = [
    endpoint({
      method: 'get',
      path: '/healthz',
      audience: 'public',
      tag: 'System',
      operationId: 'getHealth',
      summary: 'Check that the process is alive',
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
        'Ready means: the database is reachable and migrated, notifications arrive, and the file storage has answered at least once. If the storage fails later, `storage` says so, and the process stays ready.',
      response: {
        data: z.object({
          status: z.literal('ready'),
          schemaVersion: z.int().describe('Number of the latest migration in the database.'),
          storage: z.enum(['reachable', 'unreachable']),
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
      response: { stream: true, mediaType: 'text/plain', description: 'The metrics.' },
      async handler({ services, res }) {
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
      response: {
        stream: true,
        mediaType: 'application/json',
        description: 'OpenAPI 3.1, compressed if `Accept-Encoding` permits it.',
        schema: z.looseObject({ openapi: z.string() }),
      },
      example: { data: { openapi: '3.1.0', info: { title: 'Business Runner', version: '0.1.0' }, paths: {} } },
      handler({ res }) {
        document ??= JSON.stringify(openApi([...described, ...system]), null, 2);
        res.set({ 'Content-Type': 'application/json; charset=utf-8', 'Cache-Control': 'no-cache' }).end(document);
      },
    }),
    endpoint({
      method: 'get',
      path: '/docs',
      audience: 'public',
      tag: 'System',
      operationId: 'getDocs',
      summary: 'Open the API documentation',
      response: { stream: true, mediaType: 'text/html', description: 'A page with Swagger UI.' },
      handler({ res }) {
        res.set('Content-Security-Policy', docsPolicy).type('html').end(docsPage);
      },
    }),
    endpoint({
      method: 'get',
      path: '/docs/{file}',
      audience: 'public',
      tag: 'System',
      operationId: 'getDocsFile',
      summary: 'Get a file of the API documentation',
      params: { file: z.enum(docsFiles) },
      response: { stream: true, mediaType: 'application/octet-stream', description: 'The file.' },
      async handler({ params, res }) {
        if (params.file === 'start.js') res.type('js').end(docsScript);
        else await sendFile(res, path.join(docsFolder, params.file));
      },
    }),
  ] as const satisfies readonly Endpoint[];
  return system;
}

function sendFile(res: { sendFile(file: string, done: (error?: Error) => void): void }, file: string): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  res.sendFile(file, (error) => (error ? reject(error) : resolve()));
  return promise;
}
