import t from 'tap';
import { z } from 'zod';
import { acceptanceCriterionSchema } from '../../../engine/acceptance/index.ts';

const spec = z.strictObject({ acceptanceCriteria: z.array(acceptanceCriterionSchema) });

function issuesOf(criterion: unknown): string[] {
  const result = spec.safeParse({ acceptanceCriteria: [criterion] });
  return (result.error?.issues ?? []).map((issue) => `${issue.path.join('.')}: ${issue.code}`);
}

const file = (...checks: unknown[]) => ({ kind: 'output_file', path: 'out/report.json', checks });
const pointer = (operator: string, value?: unknown, at = '/a') => ({
  kind: 'json_pointer',
  pointer: at,
  operator,
  value,
});

t.test('the documented criteria are taken as they are', async (t) => {
  const criterion = file(
    { kind: 'media_type', anyOf: ['application/json', 'image/*'] },
    ...['eq', 'ne', 'contains'].flatMap((operator) =>
      [1, 'x', null, true, [1], { a: 1 }].map((v) => pointer(operator, v)),
    ),
    ...['gt', 'gte', 'lt', 'lte'].flatMap((operator) => [pointer(operator, 1.5), pointer(operator, 'x')]),
    { kind: 'json_pointer', pointer: '', operator: 'exists' },
    pointer('exists', false, '/a~1b/~0/0'),
  );
  t.same(issuesOf(criterion), []);
  t.same(spec.parse({ acceptanceCriteria: [criterion] }), { acceptanceCriteria: [criterion] }, 'nothing is rewritten');
  const bare = { kind: 'output_file', path: 'x' };
  t.same(spec.parse({ acceptanceCriteria: [bare] }), { acceptanceCriteria: [{ ...bare, checks: [] }] });
});

t.test('criteria of other kinds are kept whole, for people to read', async (t) => {
  const legacy = { kind: 'human_review', text: 'Looks right', checks: [{ anything: 1 }] };
  t.same(spec.parse({ acceptanceCriteria: [legacy] }), { acceptanceCriteria: [legacy] });
});

t.test('what could never be evaluated is refused where it stands', async (t) => {
  const at = 'acceptanceCriteria.0';
  const cases: [unknown, string[]][] = [
    ['text', [`${at}: invalid_type`]],
    [{}, [`${at}.kind: invalid_type`]],
    [{ kind: '' }, [`${at}.kind: too_small`]],
    [{ kind: 'output_file' }, [`${at}.path: invalid_type`]],
    [{ ...file(), extra: 1 }, [`${at}: unrecognized_keys`]],
    [file({ kind: 'regex', pattern: 'x' }), [`${at}.checks.0.kind: invalid_union`]],
    [file({ kind: 'media_type', anyOf: [] }), [`${at}.checks.0.anyOf: too_small`]],
    [file({ kind: 'media_type', anyOf: ['json'] }), [`${at}.checks.0.anyOf.0: invalid_format`]],
    [file(pointer('equals', 1)), [`${at}.checks.0.operator: invalid_value`]],
    [file(pointer('eq', 1, 'a')), [`${at}.checks.0.pointer: invalid_format`]],
    [file(pointer('eq', 1, '/a~2')), [`${at}.checks.0.pointer: invalid_format`]],
    [file({ kind: 'json_pointer', pointer: '/a', operator: 'eq' }), [`${at}.checks.0.value: custom`]],
    [file(pointer('gt', true)), [`${at}.checks.0.value: custom`]],
    [file(pointer('exists', 'yes')), [`${at}.checks.0.value: custom`]],
    [file(pointer('eq', [2 ** 53])), [`${at}.checks.0.value: custom`]],
    [file(pointer('eq', 'x'.repeat(20_000))), [`${at}.checks.0.value: custom`]],
  ];
  for (const [criterion, expected] of cases)
    t.same(issuesOf(criterion), expected, JSON.stringify(criterion).slice(0, 80));
  for (const path of ['', '/a', 'a/', '../a', 'a/./b', 'a//b', 'a\\b', 'a\0b', '\ud800']) {
    t.same(issuesOf({ kind: 'output_file', path }).length > 0, true, `path ${JSON.stringify(path)}`);
  }
});

t.test('a value nested as deep as a body allows does no harm', async (t) => {
  let deep: unknown = 1;
  for (let level = 0; level < 200_000; level += 1) deep = [deep];
  t.same(issuesOf(file(pointer('eq', deep))), ['acceptanceCriteria.0.checks.0.value: custom']);
});
