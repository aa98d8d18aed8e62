import t from 'tap';
import { decisionArguments } from '../../../api/http/decision_arguments.ts';

const bytes = (value: unknown) => Buffer.byteLength(JSON.stringify(value));

t.test('a usual call is kept as it was', async (test) => {
  const given = {
    title: 'A task',
    spec: { objective: 'Do it', budget: { maxAgentRuns: 3 } },
    dependsOn: [],
    dueAt: null,
  };
  test.same(decisionArguments(given), given);
  test.same(decisionArguments({}), {});
  test.same(decisionArguments({ gone: undefined, kept: false }), { gone: undefined, kept: false });
});

t.test('texts are cut, and never in the middle of a character', async (test) => {
  test.same(decisionArguments({ title: 'é'.repeat(600) }), { title: `${'é'.repeat(500)}…` });
  test.same(decisionArguments({ title: '😀'.repeat(600) }), { title: `${'😀'.repeat(500)}…` });
  test.same(decisionArguments({ title: `a${'😀'.repeat(600)}` }), { title: `a${'😀'.repeat(499)}…` });
  test.same(decisionArguments({ title: '😀'.repeat(300) }), { title: '😀'.repeat(300) });
  test.same(decisionArguments({ title: 'x'.repeat(500) }), { title: 'x'.repeat(500) });
});

t.test('whatever is sent, little is kept of it', async (test) => {
  const long = Array.from({ length: 5_000 }, (_, index) => index);
  test.same(decisionArguments({ long }), { long: [...long.slice(0, 100), '…'] });
  const texts = decisionArguments({ list: Array(50).fill('x'.repeat(400)) });
  test.same(texts, { list: [...Array(20).fill(`${'x'.repeat(60)}…`), '…'] });
  let deep: Record<string, unknown> = { end: true };
  for (let level = 0; level < 1_000; level += 1) deep = { deep };
  test.ok(bytes(decisionArguments(deep)) < 200);
  const wide = Object.fromEntries(
    Array.from({ length: 9_000 }, (_, index) => [`${'k'.repeat(200)}${index}`, 'x'.repeat(90)]),
  );
  test.ok(bytes(decisionArguments(wide)) <= 8_000);
  const tree = (levels: number): unknown =>
    levels === 0 ? 'x'.repeat(90) : Array.from({ length: 21 }, () => tree(levels - 1));
  test.same(Object.keys(decisionArguments({ tree: tree(3) })), ['bytes'], 'what stays too large is measured alone');
});
