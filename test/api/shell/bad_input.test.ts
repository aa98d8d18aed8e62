import fc from 'fast-check';
import t from 'tap';
import { apiEndpoints } from '../../../api/app.ts';
import { publishBuiltinCatalog } from '../../../engine/catalog/index.ts';
import { SERVICE_TOKEN, startTestApp } from '../../support/app.ts';
import { startRun } from './started_run.ts';

type Json = Record<string, unknown>;
type Parameter = { name: string; in: 'path' | 'query' | 'header'; required: boolean };
type Operation = {
  operationId: string;
  parameters?: Parameter[];
  requestBody?: { content: Record<string, { example?: unknown }> };
};
type Document = { paths: Record<string, Record<string, Operation>> };
type Case = Readonly<{
  what: string;
  method: string;
  path: string;
  headers: Record<string, string>;
  body: string | undefined;
}>;

// A failure is repeated with the seed that it names; ROUNDS=500 digs deeper.
const seed = Number(process.env['SEED'] ?? Date.now() % 1_000_000);
const rounds = Number(process.env['ROUNDS'] ?? 20);

const app = await startTestApp(t, { config: { logLevel: 'error' } });
const run = await startRun(app.services.db);
await publishBuiltinCatalog(app.services.db);
const response = await app.owner.fetch('/openapi.json');
const document = (await response.json()) as Document;

/** What exists, so that bad input gets past the first look-up. */
const known: Readonly<Record<string, string>> = {
  organizationId: run.organizationId,
  taskRef: 'T-1',
  runId: run.runId,
  runRequestId: run.runRequestId,
  artifactIndex: '0',
  subject: 'anna',
  path: 'report.json',
  'X-Organization-Id': run.organizationId,
  'X-Lease-Token': run.leaseToken,
};

const weirdText = fc.oneof(
  fc.constantFrom(
    '',
    '\0',
    'a\0b',
    '../../etc/passwd',
    '%00',
    '\ud800',
    '٣',
    "'; drop table app.tasks; --",
    '-1',
    '1e309',
    'null',
  ),
  fc.constantFrom(
    '00000000-0000-0000-0000-000000000000',
    'T-99999999999999999999',
    'T-0',
    '2026-13-45T99:99:99Z',
    '{}',
  ),
  fc.constantFrom('x'.repeat(300), 'x'.repeat(3_000), 'é'.repeat(9_000)),
  fc.string({ unit: 'binary', maxLength: 40 }),
);
const weird = fc.oneof(
  weirdText,
  fc.constantFrom<unknown>(
    null,
    true,
    0,
    -1,
    1.5,
    1e308,
    2 ** 53,
    -(2 ** 31) - 1,
    [],
    {},
    [[[[]]]],
    [null],
    'x'.repeat(200_000),
  ),
  fc.jsonValue({ maxDepth: 4 }),
);

/** The example with one thing wrong: a value replaced, taken away or added, anywhere in it. */
function spoil(value: unknown, pick: number, replacement: unknown, depth = 0): unknown {
  const entries = typeof value === 'object' && value !== null ? Object.entries(value) : [];
  const choice = pick % (entries.length + 2);
  if (choice === entries.length || (entries.length === 0 && depth > 0)) return replacement;
  const copy = structuredClone(value) as Json;
  if (choice > entries.length) return Array.isArray(copy) ? [...copy, replacement] : { ...copy, foreign: replacement };
  const [key, inner] = entries[choice] as [string, unknown];
  const next = Math.floor(pick / (entries.length + 2));
  if (next % 4 === 0) delete copy[key];
  else copy[key] = spoil(inner, next >> 2, replacement, depth + 1);
  return copy;
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** A path segment that survives the URL parser: dots alone would be folded into another path. */
function segment(value: unknown): string {
  const encoded = encodeURIComponent(text(value).toWellFormed());
  return /^\.*$/.test(encoded) ? `x${encoded}` : encoded.slice(0, 4_000);
}

type Spoiled = Readonly<{ place: number; pick: number; value: unknown }>;

function makeCase(template: string, method: string, operation: Operation, { place, pick, value }: Spoiled): Case {
  const parameters = operation.parameters ?? [];
  const spoilt = parameters[place % (parameters.length + 2)];
  let path = template;
  const query = new URLSearchParams();
  const headers: Record<string, string> = { authorization: `Bearer ${SERVICE_TOKEN}` };
  if (template.startsWith('/organizations') || template.startsWith('/agent-profile')) delete headers['authorization'];
  for (const parameter of parameters) {
    const given = parameter === spoilt ? value : known[parameter.name];
    if (parameter.in === 'path') path = path.replace(`{${parameter.name}}`, segment(given ?? run.runId));
    if (parameter.in === 'query' && (parameter === spoilt || parameter.required))
      query.append(parameter.name, text(given ?? 'x').toWellFormed());
    if (parameter.in === 'header' && given !== undefined)
      headers[parameter.name] = text(given)
        .replace(/[^\x20-\x7e]/g, '?')
        .slice(0, 2_000)
        .trim();
  }
  if (!spoilt && place % 2 === 0) query.append(text(value).toWellFormed().slice(0, 50), 'foreign');
  const search = query.size > 0 ? `?${String(query).slice(0, 6_000)}` : '';
  const media = Object.entries(operation.requestBody?.content ?? {})[0];
  const example = media?.[1].example;
  const wrong = spoilt === undefined || pick % 3 === 0 ? spoil(example ?? {}, pick, value) : example;
  // Nobody waits for the fuzzer.
  const body = JSON.stringify(wrong, (key, inner) =>
    key === 'waitMs' && typeof inner === 'number' ? Math.min(inner, 1) : inner,
  );
  if (media) headers['content-type'] = media[0];
  const sent = method === 'get' || (media === undefined && pick % 2 === 0) ? undefined : body;
  if (sent !== undefined) headers['content-type'] ??= 'application/json';
  return { what: operation.operationId, method: method.toUpperCase(), path: path + search, headers, body: sent };
}

async function send(one: Case): Promise<{ status: number; text: string }> {
  const init = { method: one.method, headers: one.headers, ...(one.body === undefined ? {} : { body: one.body }) };
  const answer = await fetch(`${app.url}${one.path}`, init);
  return { status: answer.status, text: await answer.text() };
}

/** Whole, so that a failure can be sent again by hand. */
function shown(one: Case, status: number, answer: string): string {
  return `seed ${seed}: ${status} ${JSON.stringify(one).slice(0, 1_500)} → ${answer.slice(0, 800)}`;
}

function isEnvelope(status: number, answer: string): boolean {
  try {
    const body = JSON.parse(answer) as {
      success?: unknown;
      statusCode?: unknown;
      error?: { code?: unknown };
      meta?: unknown;
    };
    const fits = body.success === status < 400 && body.statusCode === status && typeof body.meta === 'object';
    return fits && (status < 400 || typeof body.error?.code === 'string');
  } catch {
    return false;
  }
}

const own = new Set(apiEndpoints().map((one) => one.operationId));
const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods)
    .filter(([, operation]) => own.has(operation.operationId))
    // Would end the organization for all that come after it.
    .filter(([, operation]) => operation.operationId !== 'deleteOrganization')
    .map(([method, operation]) => ({ path, method, operation })),
);

t.test('no input makes a 5xx, and every answer is an envelope', async (t) => {
  t.ok(operations.length > 30);
  t.comment(`seed ${seed}`);
  const statuses = new Map<number, number>();
  for (const [index, { path, method, operation }] of operations.entries()) {
    const spoiled = fc.sample(fc.record({ place: fc.nat(), pick: fc.nat(), value: weird }), {
      seed: seed + index,
      numRuns: rounds,
    });
    const cases = spoiled.map((one) => makeCase(path, method, operation, one));
    const wrong: string[] = [];
    for (let at = 0; at < cases.length; at += 5) {
      const answers = await Promise.all(cases.slice(at, at + 5).map(async (one) => ({ one, ...(await send(one)) })));
      for (const { one, status, text } of answers) {
        statuses.set(status, (statuses.get(status) ?? 0) + 1);
        if (status >= 500 || (status >= 400 && !isEnvelope(status, text))) wrong.push(shown(one, status, text));
      }
    }
    t.same(wrong, [], `${method} ${path}`);
  }
  t.comment(`statuses ${JSON.stringify(Object.fromEntries(statuses))}`);
  t.ok((statuses.get(400) ?? 0) > operations.length, 'the input was bad');
  t.ok((statuses.get(200) ?? 0) + (statuses.get(201) ?? 0) > 0, 'and some of it good');
});
