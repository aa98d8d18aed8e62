import { getIntrospectionQuery } from 'graphql';
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

t.test('a variable is what the request says, also where its name is one that every object inherits', async (test) => {
  for (const name of ['constructor', 'toString', 'hasOwnProperty', '__proto__']) {
    const page = `{ tasks(first: $${name}) { nodes { id } } }`;
    const bounded = `query ($${name}: Int = 100) ${page}`;
    const boundless = `query ($${name}: Int = 1000) ${page}`;
    test.equal(codes(await admin.refused(boundless)), '400 validation_failed,too_many_rows', name);
    // By JSON, as a literal of `__proto__` would be no property; sent, it is no request at all.
    const sent = JSON.parse(`{ "${name}": 1000 }`);
    const refused = name === '__proto__' ? '400 ' : '400 validation_failed,too_many_rows';
    test.equal(codes(await admin.refused(bounded, sent)), refused, name);
    test.ok(await admin.query(bounded), name);
    const ordered = `query ($${name}: [TaskOrderBy!] = [PRIORITY_DESC]) { tasks(orderBy: $${name}) { nodes { id } } }`;
    test.equal(codes(await admin.refused(ordered)), '400 validation_failed,organization_required', name);
    const last = `query ($${name}: Int = 1000) { tasks(last: $${name}) { nodes { id } } }`;
    test.equal(codes(await admin.refused(last)), '400 validation_failed,too_many_rows', name);
    // A million rows.
    const inside = `query ($${name}: Int = 100) { organizations(first: $${name}) { nodes { tasks(first: $${name}) { nodes { runs(first: $${name}) { nodes { id } } } } } } }`;
    test.equal(codes(await admin.refused(inside)), '400 validation_failed,too_costly,too_many_values', name);
    const open = `query ($${name}: Int) ${page}`;
    test.ok(await admin.query(open), 'a page of the default length');
  }
});

t.test('the schema is asked for twice at most, and for what an explorer needs of it', async (test) => {
  const explorer = getIntrospectionQuery({
    schemaDescription: true,
    specifiedByUrl: true,
    directiveIsRepeatable: true,
    inputValueDeprecation: true,
    oneOf: true,
  });
  test.ok(await admin.query(explorer));
  const asked = (times: number) =>
    `{ ${Array.from({ length: times }, (_, n) => `a${n}: __schema { types { name } }`).join(' ')} }`;
  test.ok(await admin.query(asked(2)));
  test.equal(codes(await admin.refused(asked(3))), '400 validation_failed,too_costly');
  const spread = `{ ...A ...B } fragment A on Query { a: __type(name: "Task") { name } b: __type(name: "Run") { name } }
    fragment B on Query { c: __typename d: __schema { description } }`;
  test.equal(codes(await admin.refused(spread)), '400 validation_failed,too_costly');
  const field = '{ name type { name fields { name } } }';
  const multiplied = `{ __schema { types { ${Array.from({ length: 60 }, (_, n) => `a${n}: fields ${field}`).join(' ')} } } }`;
  test.equal(codes(await admin.refused(multiplied)), '400 validation_failed,too_many_values');
});

t.test('values count, by whatever name they are asked for, and documents count as ten', async (test) => {
  const names = (count: number) => Array.from({ length: count }, (_, n) => `a${n}: title`).join(' ');
  const rows = (fields: string) =>
    `{ organizations(first: 90) { nodes { tasks(first: 100) { nodes { ${fields} } } } } }`;
  test.ok(await admin.query(rows(names(10))));
  test.equal(codes(await admin.refused(rows(names(100)))), '400 validation_failed,too_many_values');
  test.equal(codes(await admin.refused(rows('spec'))), '400 validation_failed,too_costly');
  test.ok(await admin.query('{ organizations(first: 10) { nodes { tasks(first: 50) { nodes { spec } } } } }'));
});
