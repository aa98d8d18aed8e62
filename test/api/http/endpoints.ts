import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { z } from 'zod';
import { uuid } from '../../../api/fields/ids.ts';
import { type Endpoint, endpoint } from '../../../api/http/endpoint.ts';
import { queryBoolean } from '../../../api/http/query.ts';
import { Problem } from '../../../engine/db/problem.ts';

/** Endpoints that show what the shell does, with handlers that give back what they were handed. */
export function sampleEndpoints(): readonly Endpoint[] {
  const echo = z.looseObject({});
  return [
    endpoint({
      method: 'get',
      path: '/organizations/{organizationId}/things/{thing}',
      audience: 'owner',
      tag: 'System',
      operationId: 'getThing',
      summary: 'Gives back its parameters',
      params: { organizationId: uuid, thing: z.string().max(40) },
      query: { flag: queryBoolean().optional(), word: z.string().max(10).optional() },
      response: { data: echo },
      handler: ({ params, query }) => ({ ...params, ...query }),
    }),
    endpoint({
      method: 'post',
      path: '/organizations/{organizationId}/things',
      audience: 'owner',
      tag: 'System',
      operationId: 'createThing',
      summary: 'Gives back its body',
      params: { organizationId: uuid },
      body: z.strictObject({
        name: z.string().min(1),
        count: z.int().optional(),
        inner: z.strictObject({ a: z.string() }).optional(),
        anything: z.json().optional(),
      }),
      response: { status: 201, data: echo, message: 'The thing is made.' },
      handler: ({ body }) => ({ ...body }),
    }),
    endpoint({
      method: 'delete',
      path: '/organizations/{organizationId}/things/{thing}',
      audience: 'owner',
      tag: 'System',
      operationId: 'deleteThing',
      summary: 'Takes no body',
      params: { organizationId: uuid, thing: z.string() },
      response: { data: echo },
      handler: ({ params }) => ({ deleted: params.thing }),
    }),
    endpoint({
      method: 'put',
      path: '/files/{path*}',
      audience: 'public',
      tag: 'System',
      operationId: 'putFile',
      summary: 'Counts the bytes of its body',
      params: { path: z.string().max(100) },
      body: {
        stream: true,
        mediaTypes: ['application/octet-stream'],
        maxBytes: 4_000_000,
        tooLargeCode: 'file_too_large',
      },
      response: { status: 201, data: z.object({ path: z.string(), size: z.int() }) },
      async handler({ params, openBody }) {
        let size = 0;
        for await (const chunk of openBody()) size += (chunk as Buffer).length;
        return { path: params.path, size };
      },
    }),
    endpoint({
      method: 'put',
      path: '/refused/{how}',
      audience: 'public',
      tag: 'System',
      operationId: 'refuseFile',
      summary: 'Refuses its body before it, or after the first chunk',
      params: { how: z.enum(['before', 'midway']) },
      body: { stream: true, mediaTypes: ['application/octet-stream'], maxBytes: 4_000_000 },
      errors: [{ status: 409, code: 'state_conflict', when: 'always' }],
      response: { data: z.object({}) },
      async handler({ params, openBody }) {
        if (params.how === 'midway') for await (const _chunk of openBody()) break;
        throw new Problem(409, 'state_conflict', 'Not now.');
      },
    }),
    endpoint({
      method: 'put',
      path: '/read-late',
      audience: 'public',
      tag: 'System',
      operationId: 'readFileLate',
      summary: 'Opens its body, and reads it when the client has gone',
      body: { stream: true, mediaTypes: ['application/octet-stream'], maxBytes: 4_000_000 },
      response: { data: z.object({}) },
      async handler({ openBody, signal, log }) {
        const body = openBody();
        if (!signal.aborted) await once(signal, 'abort');
        try {
          for await (const _chunk of body);
        } catch (error) {
          log.info({ err: error }, 'read late');
          throw error;
        }
        log.error('a body that broke off was read as a whole one');
        return {};
      },
    }),
    endpoint({
      method: 'get',
      path: '/stream',
      audience: 'public',
      tag: 'System',
      operationId: 'getStream',
      summary: 'Streams ten lines, or breaks after the first',
      query: { broken: queryBoolean().optional() },
      response: { stream: true, mediaType: 'text/plain', description: 'Lines.' },
      async handler({ query, res }) {
        res.type('text/plain');
        for (let line = 0; line < 10; line += 1) {
          res.write(`${line}\n`);
          await delay(1);
          if (query.broken) throw new Error('the source broke off');
        }
        res.end();
      },
    }),
    endpoint({
      method: 'get',
      path: '/slow',
      audience: 'public',
      tag: 'System',
      operationId: 'getSlow',
      summary: 'Responds after 300 ms',
      response: { data: z.object({ done: z.boolean() }) },
      async handler() {
        await delay(300);
        return { done: true };
      },
    }),
    endpoint({
      method: 'get',
      path: '/wrong-response',
      audience: 'public',
      tag: 'System',
      operationId: 'getWrongResponse',
      summary: 'Responds with a field that its schema lacks, or an error that it does not declare',
      query: { error: queryBoolean().optional() },
      response: { data: z.object({ a: z.string() }) },
      handler: ({ query }) => {
        if (query.error) throw new Problem(418, 'teapot', 'I am one.');
        return { a: 'x', secret: 'y' } as { a: string };
      },
    }),
    endpoint({
      method: 'get',
      path: '/crash',
      audience: 'public',
      tag: 'System',
      operationId: 'getCrash',
      summary: 'Fails in a way that nobody foresaw',
      response: { data: echo },
      handler: () => {
        throw new TypeError('the password is hunter2');
      },
    }),
  ];
}
