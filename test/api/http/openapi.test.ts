import t from 'tap';
import type { z } from 'zod';
import { z as zod } from 'zod';
import { apiEndpoints } from '../../../api/app.ts';
import { uuid } from '../../../api/fields/ids.ts';
import { declaredErrors } from '../../../api/http/declared_errors.ts';
import { endpoint, isStream, type JsonAnswer } from '../../../api/http/endpoint.ts';
import { openApi } from '../../../api/http/openapi.ts';
import { queryInteger } from '../../../api/http/query.ts';
import { checkAnswer } from '../../../api/http/response_check.ts';
import { systemEndpoints } from '../../../api/system/public.ts';
import { startTestApp } from '../../support/app.ts';

const app = await startTestApp(t);
const product = [...apiEndpoints(), ...systemEndpoints([])];

type Json = Record<string, unknown>;
type Operation = {
  operationId: string;
  summary: string;
  tags: string[];
  security: Json[];
  parameters?: Json[];
  responses: Record<string, Json>;
  requestBody?: Json;
};
type Document = {
  openapi: string;
  info: Json;
  tags: { name: string }[];
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Json; securitySchemes: Json };
};

async function served(): Promise<Document> {
  const response = await app.owner.fetch('/openapi.json');
  return (await response.json()) as Document;
}

function references(node: unknown): string[] {
  if (typeof node !== 'object' || node === null) return [];
  return Object.entries(node).flatMap(([key, value]) => (key === '$ref' ? [String(value)] : references(value)));
}

function json(part: Json | undefined): { example: unknown } {
  const { content } = part as { content: Record<string, { example: unknown }> };
  return content['application/json'] as { example: unknown };
}

t.test('the document describes every endpoint, completely', async (t) => {
  const document = await served();
  t.match(document, { openapi: '3.1.0', info: { version: '0.1.0' } });
  for (const one of product) {
    const operation = document.paths[one.path.replaceAll('*}', '}')]?.[one.method];
    t.ok(operation, `${one.method} ${one.path}`);
    if (!operation) continue;
    t.ok(operation.summary.length > 3, `${one.operationId} has a summary`);
    t.ok(
      document.tags.some((tag) => tag.name === operation.tags[0]),
      `${one.operationId} has a described tag`,
    );
    const named = [...one.path.matchAll(/\{(\w+)/g)].map((match) => match[1]);
    const described = (operation.parameters ?? []).filter((parameter) => parameter['in'] === 'path');
    t.same(
      described.map((parameter) => parameter['name']),
      named,
    );
    for (const { status, code } of declaredErrors(one)) {
      t.match(operation.responses[status]?.['description'], code, `${one.operationId} ${status} ${code}`);
    }
    t.equal(operation.requestBody === undefined, one.body === undefined);
    t.equal(operation.security.length === 0, one.audience === 'public');
  }
});

t.test('operation ids are unique, and every reference leads somewhere', async (t) => {
  const document = await served();
  const ids = Object.values(document.paths).flatMap((methods) => Object.values(methods).map((one) => one.operationId));
  t.equal(new Set(ids).size, ids.length);
  for (const reference of new Set(references(document))) {
    t.ok(document.components.schemas[reference.replace('#/components/schemas/', '')], reference);
  }
  for (const methods of Object.values(document.paths)) {
    for (const { security } of Object.values(methods)) {
      for (const name of security.flatMap(Object.keys)) t.ok(document.components.securitySchemes[name], name);
    }
  }
});

t.test('every body and answer has an example that its schema allows', async (t) => {
  const document = await served();
  for (const one of product) {
    const operation = document.paths[one.path.replaceAll('*}', '}')]?.[one.method];
    if (one.body !== undefined && !isStream(one.body)) {
      const { example } = json(operation?.requestBody);
      const parsed = (one.body as z.ZodType).safeParse(example);
      t.ok(parsed.success, `${one.operationId} body ${parsed.error ? zod.prettifyError(parsed.error) : ''}`);
    }
    if (!isStream(one.response)) {
      const answer = one.response as JsonAnswer;
      const { example } = json(operation?.responses[answer.status ?? 200]);
      t.equal(checkAnswer(one, answer.status ?? 200, example), undefined, one.operationId);
    }
  }
});

t.test('parameters that arrive as text are described by what they mean', async (t) => {
  const made = endpoint({
    method: 'get',
    path: '/x/{id}',
    audience: 'public',
    tag: 'System',
    operationId: 'x',
    summary: 'X',
    params: { id: uuid },
    query: { limit: queryInteger({ minimum: 1, maximum: 9, default: 5 }) },
    headers: { 'x-lease-token': zod.string() },
    response: { data: zod.object({ when: zod.iso.datetime() }) },
    handler: () => ({ when: '' }),
  });
  const { paths } = openApi([made]) as unknown as Document;
  t.match(paths['/x/{id}']?.['get']?.parameters, [
    { name: 'id', in: 'path', required: true, schema: { type: 'string', format: 'uuid' } },
    { name: 'limit', in: 'query', required: false, schema: { type: 'integer', minimum: 1, maximum: 9, default: 5 } },
    { name: 'X-Lease-Token', in: 'header', required: true, schema: { type: 'string' } },
  ]);
});

t.test('a schema that reads differently as input has a second name, and one id cannot mean two things', async (t) => {
  const inner = zod.strictObject({ n: zod.int().default(1) }).meta({ id: 'ProbeInner' });
  const outer = zod.strictObject({ inner }).meta({ id: 'ProbeOuter' });
  const define = (data: z.ZodType) =>
    endpoint({
      method: 'post',
      path: '/x',
      audience: 'public',
      tag: 'System',
      operationId: 'x',
      summary: 'X',
      body: outer,
      response: { data },
      handler: ({ body }) => body,
    });
  const { components } = openApi([define(outer)]) as unknown as Document;
  const names = Object.keys(components.schemas).filter((name) => name.startsWith('Probe'));
  t.same(names, ['ProbeInner', 'ProbeInnerInput', 'ProbeOuter', 'ProbeOuterInput']);
  t.match(components.schemas['ProbeOuterInput'], {
    properties: { inner: { $ref: '#/components/schemas/ProbeInnerInput' } },
  });
});

t.test('mistakes in a definition are found when it is made', async (t) => {
  const parts = {
    method: 'post',
    audience: 'public',
    tag: 'System',
    operationId: 'x',
    summary: 'X',
    response: { data: zod.object({}) },
    handler: () => ({}),
  } as const;
  t.throws(() => endpoint({ ...parts, path: '/x/{id}' }), /path and params differ in id/);
  t.throws(() => endpoint({ ...parts, path: '/x', params: { id: uuid } }), /path and params differ in id/);
  t.throws(() => endpoint({ ...parts, path: '/x', body: zod.object({ a: zod.string() }) }), /strictObject/);
  const nested = zod.strictObject({ list: zod.array(zod.object({ a: zod.string() })) });
  t.throws(() => endpoint({ ...parts, path: '/x', body: nested }), /strictObject for .*list/);
  t.doesNotThrow(() =>
    endpoint({ ...parts, path: '/x', body: zod.strictObject({ any: zod.looseObject({ a: zod.string() }) }) }),
  );
});

t.test('the documentation page works with files of this host alone', async (t) => {
  const page = await app.owner.fetch('/docs');
  t.equal(page.status, 200);
  const html = await page.text();
  const links = [...html.matchAll(/(?:src|href)="([^"]+)"/g)].map((match) => match[1] ?? '');
  t.ok(links.length >= 4);
  for (const link of links) {
    t.notMatch(link, /^(https?:)?\/\//);
    const file = await app.owner.fetch(new URL(link, `${app.url}/docs`).pathname);
    t.equal(file.status, 200, link);
    t.ok((await file.bytes()).length > 0);
  }
  t.match(page.headers.get('content-security-policy'), /script-src 'self';/);
  t.notMatch(html, /<script(?![^>]*src=)/, 'no script in the page: the policy would stop it');
  t.match(await app.owner.get('/docs/package.json'), { status: 400 });
  t.match(await app.owner.get('/docs/..%2fpackage.json'), { status: 400 });
});
