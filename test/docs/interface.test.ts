import { readFileSync } from 'node:fs';
import path from 'node:path';
import t from 'tap';
import { adminEndpoints } from '../../api/admin/endpoints.ts';
import { apiEndpoints } from '../../api/app.ts';
import { openApi } from '../../api/http/openapi/document.ts';
import { systemEndpoints } from '../../api/system/public.ts';

const DOCS = path.resolve(import.meta.dirname, '../../docs');
const page = readFileSync(path.join(DOCS, 'interface.md'), 'utf8');
const quoted = new Set([...page.matchAll(/`([A-Za-z]+)`/g)].map(([, word = '']) => word));
const operations = [...apiEndpoints(), ...adminEndpoints(), ...systemEndpoints([])].map(
  ({ operationId }) => operationId,
);

t.test('every operation has its place on the page', (test) => {
  test.same(
    operations.filter((name) => !quoted.has(name)),
    [],
  );
  test.end();
});

t.test('every name that looks like an operation is one', (test) => {
  const verbs = new Set(operations.flatMap((name) => /^[a-z]+(?=[A-Z])/.exec(name) ?? []));
  const named = [...quoted].filter((word) => verbs.has(/^[a-z]+(?=[A-Z])/.exec(word)?.[0] ?? ''));
  test.ok(named.length > 50);
  test.same(
    named.filter((word) => !operations.includes(word)),
    [],
  );
  test.end();
});

/** Every value of an enumeration or a constant, at any depth. */
function* values(node: unknown): Generator<string> {
  if (typeof node !== 'object' || node === null) return;
  const { enum: several, const: one } = node as { enum?: unknown; const?: unknown };
  for (const value of [...(Array.isArray(several) ? several : []), one]) if (typeof value === 'string') yield value;
  for (const inner of Object.values(node)) yield* values(inner);
}

t.test('every state, kind and other enumerated value is named', (test) => {
  const named = [...new Set(values(openApi(apiEndpoints())))];
  test.ok(named.length > 150);
  test.same(
    named.filter((value) => !new RegExp(`(?<![\\w.])${value.replaceAll('.', '\\.')}(?!\\w)`).test(page)),
    [],
  );
  test.end();
});

t.test('sections are numbered without gaps', (test) => {
  const numbers = [...page.matchAll(/^#{2,4} (\d+(?:\.\d+)*)\.? /gm)].map(([, number = '']) => number);
  test.ok(numbers.length > 80);
  for (const [index, number] of numbers.entries()) {
    const parts = number.split('.');
    const last = Number(parts.pop());
    const before = last === 1 ? parts.join('.') : [...parts, last - 1].join('.');
    test.ok(before === '' || numbers.slice(0, index).includes(before), `${number} follows ${before}`);
  }
  test.same(new Set(numbers).size, numbers.length);
  test.end();
});

t.test('sections that the page refers to exist', (test) => {
  const numbers = new Set([...page.matchAll(/^#{2,4} (\d+(?:\.\d+)*)\.? /gm)].map(([, number = '']) => number));
  // A parenthesis that holds numbers alone: (2.9.5), (4.13, 4.18).
  const cited = [...page.matchAll(/\((\d+\.\d[\d., ]*)\)/g)].flatMap(([, list = '']) => list.split(', '));
  test.ok(cited.length > 30);
  test.same(
    cited.filter((number) => !numbers.has(number)),
    [],
  );
  test.end();
});
