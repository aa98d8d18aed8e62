import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import t from 'tap';
import { adminEndpoints } from '../../../api/admin/endpoints.ts';
import { apiEndpoints } from '../../../api/app.ts';
import { openApi } from '../../../api/http/openapi/document.ts';
import { systemEndpoints } from '../../../api/system/public.ts';
import { dereferenced, examplesOf } from '../../support/openapi.ts';

type Json = Record<string, unknown>;
type Media = { schema: Json; example?: unknown; examples?: Record<string, Json> };
type Response = { description: string; headers?: Record<string, Json>; content?: Record<string, Media> };
type Operation = {
  operationId: string;
  summary: string;
  description?: string;
  tags: string[];
  /** Undefined: that of the document. */
  security?: Json[];
  parameters?: Json[];
  requestBody?: { content: Record<string, Media> };
  responses: Record<string, Json>;
};
type Document = {
  security: Json[];
  tags: { name: string; description: string }[];
  paths: Record<string, Record<string, Operation>>;
  components: Record<string, Record<string, Json>>;
};

/** For each operation, with its share of the components: what is too large for it belongs into components. */
const MAX_BYTES = 2_650;
const MAX_INLINE_BYTES = 250;

const described = [...apiEndpoints(), ...adminEndpoints()];
const document = openApi([...described, ...systemEndpoints(described)]) as unknown as Document;
const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
);
const responsesOf = (operation: Operation) =>
  Object.entries(operation.responses).map(
    ([status, response]) => [Number(status), dereferenced(document, response) as Response] as const,
  );

/** Every value in the document with the path that leads to it. */
function* nodes(node: unknown, at: readonly string[] = []): Generator<readonly [readonly string[], unknown]> {
  yield [at, node];
  if (typeof node !== 'object' || node === null) return;
  for (const [key, inner] of Object.entries(node)) yield* nodes(inner, [...at, key]);
}
const all = [...nodes(document)];

t.test('the document is small', async (t) => {
  const bytes = Buffer.byteLength(JSON.stringify(document)) / operations.length;
  t.ok(bytes < MAX_BYTES, `${bytes} bytes an operation`);
});

t.test('operation ids and paths are unique and safe for generators', async (t) => {
  const ids = operations.map(({ operation }) => operation.operationId);
  t.equal(new Set(ids).size, ids.length);
  t.same(
    ids.filter((id) => !/^[a-z][A-Za-z0-9]*$/.test(id)),
    [],
  );
  const shapes = Object.keys(document.paths).map((path) => path.replace(/\{\w+\}/g, '{}'));
  t.equal(new Set(shapes).size, shapes.length, 'no two paths match the same request');
  t.same(
    Object.keys(document.paths).filter((path) => /\/$|\?|\{\}/.test(path)),
    [],
  );
});

t.test('every component is used, and every reference leads to one', async (t) => {
  const used = new Set(all.flatMap(([at, node]) => (at.at(-1) === '$ref' ? [String(node)] : [])));
  for (const reference of used) t.ok(dereferenced(document, { $ref: reference }), reference);
  for (const [kind, named] of Object.entries(document.components)) {
    for (const name of Object.keys(named)) {
      const uses =
        kind === 'securitySchemes' &&
        operations.some(({ operation }) => securityOf(operation).some((one) => name in one));
      t.ok(uses || used.has(`#/components/${kind}/${name}`), `${kind} ${name} is used`);
      t.match(name, /^[A-Za-z0-9]+$/);
    }
  }
});

function securityOf({ security }: Operation): Json[] {
  return security ?? document.security;
}

t.test('each path parameter is declared once, and nothing else is', async (t) => {
  for (const { path, operation } of operations) {
    const parameters = (operation.parameters ?? []).map((parameter) => dereferenced(document, parameter));
    for (const { name, description } of parameters) {
      t.match(description, /^[A-Z`].*\.$/, `${operation.operationId} ${name}: description`);
    }
    const inPath = parameters.filter((parameter) => parameter['in'] === 'path');
    const names = [...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1]);
    t.same(inPath.map((parameter) => parameter['name']).sort(), names.sort(), path);
    t.ok(inPath.every((parameter) => parameter['required'] === true));
    const keys = parameters.map((parameter) => `${parameter['in']} ${parameter['name']}`);
    t.equal(new Set(keys).size, keys.length, operation.operationId);
  }
});

t.test(
  'every operation has one tag, and the operations of a tag stand together in the order of the tags',
  async (t) => {
    const order = document.tags.map(({ name }) => name);
    t.ok(document.tags.every(({ description }) => description.length > 10));
    t.ok(operations.every(({ operation }) => operation.tags.length === 1));
    const seen = operations.map(({ operation }) => operation.tags[0]);
    const groups = seen.filter((tag, index) => tag !== seen[index - 1]);
    t.same(groups, order);
  },
);

t.test('every operation says what it does, who may call it and what can go wrong', async (t) => {
  for (const { path, operation } of operations) {
    const { operationId, summary, description = '' } = operation;
    t.match(summary, /^[A-Z].{3,70}[^.]$/, `${operationId}: summary`);
    t.match(description, /^[A-Z`].*[.:]/, `${operationId}: description`);
    if (!path.startsWith('/internal/') && !path.startsWith('/organizations') && securityOf(operation).length === 0) {
      t.equal(operation.tags[0], 'System', `${operationId} needs no token`);
    }
    const statuses = Object.keys(operation.responses).map(Number);
    t.ok(statuses.some((status) => status < 300) && 'default' in operation.responses);
    t.ok(responsesOf(operation).every(([, response]) => response.description.length > 1));
  }
});

t.test('what JSON goes in and out has a schema and an example', async (t) => {
  for (const { method, operation } of operations) {
    const bodies = operation.requestBody ? [operation.requestBody.content] : [];
    const responses = responsesOf(operation).flatMap(([, { content }]) => (content ? [content] : []));
    for (const content of [...bodies, ...responses]) {
      const json = content['application/json'];
      if (!json) continue;
      t.ok(Object.keys(json.schema).length > 0, operation.operationId);
      t.ok(
        examplesOf(document, json).every((one) => JSON.stringify(one).length > 2),
        operation.operationId,
      );
    }
    if (method === 'head') t.ok(responsesOf(operation).every(([status, { content }]) => !(status < 400 && content)));
  }
});

const ajv = new Ajv2020({
  strict: true,
  allowUnionTypes: true,
  strictRequired: false,
  allErrors: true,
  inlineRefs: false,
});
addFormats.default(ajv);
ajv.addKeyword('components');
ajv.addSchema({ $id: 'openapi', components: document.components }, 'openapi');

/** Schemas refer to `#/components`, which lie in a document of their own here. */
function absolute(schema: unknown): Json {
  return JSON.parse(JSON.stringify(schema).replaceAll('"#/components/', '"openapi#/components/'));
}

t.test('every example is valid against its schema, as a JSON Schema validator reads it', async (t) => {
  let validated = 0;
  /** By the text of the schema: most are a reference that many operations share. */
  const validators = new Map<string, ReturnType<typeof ajv.compile>>();
  const check = (name: string, schema: Json, value: unknown) => {
    const text = JSON.stringify(absolute(schema));
    const validate = validators.get(text) ?? ajv.compile(JSON.parse(text));
    validators.set(text, validate);
    t.ok(validate(value), `${name}: ${ajv.errorsText(validate.errors)}`);
    validated += 1;
  };
  for (const { operation } of operations) {
    for (const parameter of operation.parameters ?? []) {
      const { name, schema, example } = dereferenced(document, parameter) as {
        name: string;
        schema: Json;
        example?: unknown;
      };
      if (example !== undefined) check(`${operation.operationId} ${name}`, schema, example);
    }
    const contents = [operation.requestBody?.content, ...responsesOf(operation).map(([, { content }]) => content)];
    for (const [type, media] of contents.flatMap((content) => Object.entries(content ?? {}))) {
      if (type !== 'application/json' && media.example === undefined) continue;
      for (const value of examplesOf(document, media)) check(operation.operationId, media.schema, value);
    }
  }
  for (const [name, schema] of Object.entries(document.components['schemas'] ?? {})) {
    for (const [at, node] of nodes(schema)) {
      const { examples, ...rest } = (node ?? {}) as Json;
      if (at.at(-1) === 'properties' || !Array.isArray(examples)) continue;
      for (const value of examples) check(`${name}.${at.join('.')}`, rest, value);
    }
  }
  t.ok(validated > 500, `${validated} examples`);
});

t.test('examples tell of one organization, in values that could be real', async (t) => {
  const values = all.flatMap(([at, node]) => {
    const inExample = at.some((key) => key === 'example' || key === 'examples');
    return inExample && typeof node === 'string' ? [[at, node] as const] : [];
  });
  t.ok(values.length > 1000);
  for (const [at, value] of values) {
    const name = at.at(-1) ?? '';
    if (name === 'kind' || name === '$ref') continue;
    t.notMatch(value, /^(text|string|foo|bar|test|example|x+|lorem.*)$/i, at.join('.'));
    t.not(value, name, `${at.join('.')} is no name of its own`);
  }
});

t.test('a schema that stands in several places is a component', async (t) => {
  const inline = all.flatMap(([at, node]) => {
    const isSchema =
      typeof node === 'object' && node !== null && ('type' in node || 'anyOf' in node || 'oneOf' in node);
    const named = at.length === 3 && at[0] === 'components' && at[1] === 'schemas';
    const inExample = at.includes('example') || at.includes('examples');
    return isSchema && !named && !inExample ? [{ at: at.join('/'), text: JSON.stringify(node) }] : [];
  });
  for (const [text, alike] of Map.groupBy(inline, ({ text }) => text)) {
    if (text.length <= MAX_INLINE_BYTES || alike.length === 1) continue;
    t.fail(`${alike.length} times ${text.length} bytes: ${alike.map(({ at }) => at).join(', ')}`);
  }
});

t.test('no schema contains itself, which generators of types cannot follow', async (t) => {
  const schemas = document.components['schemas'] ?? {};
  const within = (schema: unknown, outer: readonly string[]): void => {
    for (const [at, node] of nodes(schema)) {
      if (at.at(-1) !== '$ref') continue;
      const name = String(node).replace('#/components/schemas/', '');
      if (outer.includes(name)) t.fail(`${[...outer, name].join(' → ')}`);
      else within(schemas[name], [...outer, name]);
    }
  };
  for (const [name, schema] of Object.entries(schemas)) within(schema, [name]);
});

t.test('texts can be read by somebody who has this document alone', async (t) => {
  const texts = all.flatMap(([at, node]) => {
    const isText = ['summary', 'description'].includes(at.at(-1) ?? '') && typeof node === 'string';
    return isText ? [[at.join('.'), node] as const] : [];
  });
  t.ok(texts.length > 500);
  for (const [at, text] of texts) {
    t.notMatch(text, /\bcontract\b [0-9]|\bdecisions? [0-9]|design\/|\bsection [0-9]|\d\.\d+\)/i, at);
    const prose = text.replaceAll(/```sh\n.*?\n```/gs, '');
    t.notMatch(prose, /^\s|\s$|[^\n]\n[^\n-]| {2}/, `${at} is clean`);
  }
});
