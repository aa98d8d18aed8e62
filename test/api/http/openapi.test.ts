import t from 'tap';
import { z } from 'zod';
import { adminEndpoints } from '../../../api/admin/endpoints.ts';
import { apiEndpoints } from '../../../api/app.ts';
import { uuid } from '../../../api/fields/ids.ts';
import { declaredErrors, documentedErrors } from '../../../api/http/declared_errors.ts';
import {
  type DeclaredError,
  type Endpoint,
  endpoint,
  isStream,
  type JsonResponse,
} from '../../../api/http/endpoint.ts';
import { openApi } from '../../../api/http/openapi/document.ts';
import { queryInteger } from '../../../api/http/query.ts';
import { checkResponse } from '../../../api/http/response_check.ts';
import { systemEndpoints } from '../../../api/system/public.ts';
import { dereferenced, examplesOf } from '../../support/openapi.ts';

const described = [...apiEndpoints(), ...adminEndpoints()];
const product = [...described, ...systemEndpoints(described)];

type Json = Record<string, unknown>;
type Operation = {
  operationId: string;
  summary: string;
  tags: string[];
  /** Undefined: that of the document. */
  security?: Json[];
  parameters?: Json[];
  responses: Record<string, Json>;
  requestBody?: Json;
};
type Document = {
  openapi: string;
  info: Json;
  security: Json[];
  tags: { name: string }[];
  paths: Record<string, Record<string, Operation>>;
  components: Record<'schemas' | 'parameters' | 'responses' | 'examples' | 'securitySchemes', Record<string, Json>>;
};

const document = openApi(product) as unknown as Document;

const pathOf = ({ path }: Endpoint) => path.replaceAll('*}', '}');
const operationOf = (one: Endpoint) => document.paths[pathOf(one)]?.[one.method];

/** The examples of a JSON body or response. */
function examplesIn(part: Json | undefined): unknown[] {
  const { content } = part as { content: Record<string, { schema: Json; example?: unknown }> };
  const json = content['application/json'];
  return json ? examplesOf(document, json) : [undefined];
}

t.test('the document describes every endpoint, completely', async (t) => {
  t.match(document, { openapi: '3.1.0', info: { version: '0.1.0' } });
  for (const one of product) {
    const operation = operationOf(one);
    t.ok(operation, `${one.method} ${one.path}`);
    if (!operation) continue;
    t.ok(operation.summary.length > 3, `${one.operationId} has a summary`);
    t.ok(
      document.tags.some((tag) => tag.name === operation.tags[0]),
      `${one.operationId} has a described tag`,
    );
    const named = [...one.path.matchAll(/\{(\w+)/g)].map((match) => match[1]);
    const described = (operation.parameters ?? [])
      .map((parameter) => dereferenced(document, parameter))
      .filter((parameter) => parameter['in'] === 'path');
    t.same(
      described.map((parameter) => parameter['name']),
      named,
    );
    t.equal(operation.requestBody === undefined, one.body === undefined);
    const { security = document.security } = operation;
    t.equal(security.length === 0, one.audience === 'public');
    t.equal('ownerToken' in (security[0] ?? {}), one.audience === 'owner');
  }
});

t.test('every refusal is in the document, as a shared response with an example of each code', async (t) => {
  for (const one of product) {
    const documented = documentedErrors(one);
    const shown = new Set(documented.map(({ status }) => status));
    const hidden = declaredErrors(one).filter(({ status }) => !shown.has(status));
    t.ok(hidden.every(({ status }) => one.body === undefined && [408, 413, 415].includes(status)));
    const responses = operationOf(one)?.responses ?? {};
    const refused = Object.keys(responses).filter((status) => status >= '400' && status !== 'default');
    t.ok(
      refused.every((status) => shown.has(Number(status))),
      one.operationId,
    );
    const faults = documented.flatMap((error) => {
      const places = [responses[error.status], responses['default']].flatMap((place) => (place ? [place as Json] : []));
      return places.some((place) => faultOf(one, error, place).length === 0) ? [] : [`${error.status} ${error.code}`];
    });
    t.same(faults, [], one.operationId);
  }
});

/** What is wrong with the response that describes an error. */
function faultOf(one: Endpoint, { status, code, when }: DeclaredError, response: Json): string[] {
  const { description, content } = dereferenced(document, response) as { description: string; content: Json };
  const { examples } = content['application/json'] as { examples: Record<string, Json> };
  const example = dereferenced(document, examples[code] ?? {})['value'] as { error: Json } | undefined;
  const isOwn = one.errors?.some((error) => error.when === when);
  const faults = {
    'is no shared response': !/^#\/components\/responses\//.test(String(response['$ref'])),
    'does not name the code': !description.includes(`\`${code}\`: `),
    'does not say when': isOwn && !description.includes(when),
    'has no example of the code': example?.error['code'] !== code,
    'has an example that would be refused': !example || checkResponse(one, status, example) !== undefined,
  };
  return Object.entries(faults).flatMap(([fault, is]) => (is ? [`${status} ${code} ${fault}`] : []));
}

t.test('every body and response has an example that the endpoint itself accepts', async (t) => {
  for (const one of product) {
    const operation = operationOf(one);
    if (one.body !== undefined && !isStream(one.body)) {
      for (const example of examplesIn(operation?.requestBody)) {
        const parsed = (one.body as z.ZodType).safeParse(example);
        t.ok(parsed.success, `${one.operationId} body ${parsed.error ? z.prettifyError(parsed.error) : ''}`);
      }
    }
    if (!isStream(one.response)) {
      const { status = 200 } = one.response as JsonResponse;
      const response = dereferenced(document, operation?.responses[status] ?? {});
      t.equal(checkResponse(one, status, examplesIn(response)[0]), undefined, one.operationId);
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
    headers: { 'x-lease-token': z.string() },
    response: { data: z.object({ when: z.iso.datetime() }) },
    handler: () => ({ when: '' }),
  });
  const { paths } = openApi([made]) as unknown as Document;
  t.match(paths['/x/{id}']?.['get']?.parameters, [
    { name: 'id', in: 'path', required: true, schema: { type: 'string', format: 'uuid' } },
    {
      name: 'limit',
      in: 'query',
      required: undefined,
      schema: { type: 'integer', minimum: 1, maximum: 9, default: 5 },
    },
    { name: 'X-Lease-Token', in: 'header', required: true, schema: { type: 'string' } },
  ]);
});

t.test('a schema that reads differently as input has a second name, and one id cannot mean two things', async (t) => {
  const inner = z.strictObject({ n: z.int().default(1) }).meta({ id: 'ProbeInner' });
  const outer = z.strictObject({ inner }).meta({ id: 'ProbeOuter' });
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
    response: { data: z.object({}) },
    handler: () => ({}),
  } as const;
  t.throws(() => endpoint({ ...parts, path: '/x/{id}' }), /path and params differ in id/);
  t.throws(() => endpoint({ ...parts, path: '/x', params: { id: uuid } }), /path and params differ in id/);
});
