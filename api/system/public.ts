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
      summary: 'Whether the process runs',
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
      summary: 'Whether the process can do its work',
      description:
        'The database answers and is migrated to what this code needs, notifications arrive, and the storage of files has answered since the start. Is it away later, storage says so, and the process stays ready.',
      response: {
        data: z.object({
          status: z.literal('ready'),
          schemaVersion: z.int(),
          storage: z.enum(['reachable', 'unreachable']),
        }),
      },
      example: { data: { status: 'ready', schemaVersion: 8, storage: 'reachable' } },
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
      summary: 'Metrics in the Prometheus text format',
      response: { stream: true, mediaType: 'text/plain', description: 'One metric a line.' },
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
      summary: 'This description',
      response: {
        stream: true,
        mediaType: 'application/json',
        description: 'OpenAPI 3.1.',
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
      summary: 'This description, to read and try out',
      response: { stream: true, mediaType: 'text/html', description: 'Swagger UI.' },
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
      summary: 'The files of that page',
      params: { file: z.enum(docsFiles) },
      response: { stream: true, mediaType: 'application/octet-stream', description: 'A file of Swagger UI.' },
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
