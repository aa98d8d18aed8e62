import t from 'tap';
import { adminClient, type RefusedQuery } from '../../support/admin.ts';
import { startTestApp } from '../../support/app.ts';

const admin = adminClient(await startTestApp(t));

const codes = ({ status, errors }: RefusedQuery) =>
  `${status} ${errors.map(({ extensions }) => [extensions.code, ...(extensions.issues ?? []).map(({ code }) => code)])}`;

t.test('a text with thousands of brackets inside of brackets is not even parsed', async (test) => {
  const levels = 1_900;
  const texts = [
    `{ ${'a { '.repeat(levels)} b ${'}'.repeat(levels)} }`,
    `mutation { publishCatalogRevision(catalog: ${'['.repeat(levels)}${']'.repeat(levels)}) { auditEntryId } }`,
    `query ($x: ${'['.repeat(levels)}Int${']'.repeat(levels)}) { __typename }`,
    '{ '.repeat(levels),
  ];
  for (const text of texts) test.equal(codes(await admin.refused(text)), '400 validation_failed,too_deep');
});

t.test('fragments that multiply are refused before they are planned', async (test) => {
  // Each of them doubles the ways to the last one.
  const doubled = (type: string, last: string) =>
    [...Array(100).keys()].map((n) => `fragment f${n} on ${type} { ...f${n + 1} ... { ...f${n + 1} } }`).join(' ') +
    ` fragment f100 on ${type} { ${last} }`;
  const root = await admin.refused(`{ ...f0 } ${doubled('Query', '__typename')}`);
  test.match(codes(root), '400 validation_failed,too_many_selections');
  const rows = await admin.refused(`{ organizations { nodes { ...f0 } } } ${doubled('Organization', 'id')}`);
  test.match(codes(rows), '400 validation_failed,too_many_selections');
});
