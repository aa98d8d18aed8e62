import { randomUUID } from 'node:crypto';
import t from 'tap';
import {
  assessContext,
  citation,
  citedSources,
  DOCUMENT_MAX_BYTES,
  decodeDocument,
  decodeHealthReport,
  encodeDocument,
  foreignCitations,
} from '../../../engine/context/index.ts';
import { entry } from '../../support/context_files.ts';

const organizationId = randomUUID();

t.test('a document is the same bytes for the same entries, and is read back', async (test) => {
  const entries = [entry('a', { value: 1.5, evidence: ['x'] }), entry('ü', { steps: ['one', 'two'] })];
  const bytes = encodeDocument(entries);
  test.same(decodeDocument(bytes), entries);
  test.ok(
    bytes.equals(encodeDocument(entries.map((one) => Object.fromEntries(Object.entries(one).reverse()) as typeof one))),
  );
  test.same(decodeDocument(Buffer.from('{"entries": [{"key": "k"}]}')), [entry('k')], 'what is left out is empty');
});

t.test('what is no document says what is wrong with it', async (test) => {
  const wrong: [string | Uint8Array, RegExp][] = [
    ['', /is not JSON/],
    ['{"entries": [', /is not JSON/],
    [Uint8Array.of(0x22, 0xff, 0x22), /is not JSON/],
    ['[]', /is no document of the context/],
    ['{"entries": [{}]}', /entries\.0\.key/],
    ['{"entries": [{"key": "k"}, {"key": "k"}]}', /must have a key each/],
    ['{"entries": [{"key": "k", "extra": 1}]}', /is no document/],
    ['{"entries": [], "more": 1}', /is no document/],
  ];
  for (const [bytes, message] of wrong) test.throws(() => decodeDocument(Buffer.from(bytes)), message, String(bytes));
  const large = Array.from({ length: 60 }, (_, index) => entry(`k${index}`, { notes: 'x'.repeat(20_000) }));
  test.throws(() => encodeDocument(large), new RegExp(`more than ${DOCUMENT_MAX_BYTES} bytes`));
});

t.test(
  'evidence names sources of the organization, something of another, or nothing that is kept here',
  async (test) => {
    const id = randomUUID();
    const uri = (organization: string, rest = `context/sources/${id}`) => `org://${organization}/${rest}`;
    for (const one of [
      id,
      id.toUpperCase(),
      `source:${id}`,
      uri(organizationId),
      uri(organizationId).toUpperCase().replace('ORG', 'org'),
    ]) {
      test.same(citation(organizationId, one), { sourceId: id }, one);
    }
    for (const one of [
      uri(randomUUID()),
      uri(organizationId, `runs/${id}`),
      'org://x',
      'ORG://x',
      `${uri(organizationId)}/../x`,
    ]) {
      test.equal(citation(organizationId, one), 'foreign', one);
    }
    for (const one of ['https://example.com/', 'a talk with Anna', `see ${id}`]) {
      test.equal(citation(organizationId, one), 'free', one);
    }
    const entries = [
      entry('a', { evidence: [id, 'x', uri(organizationId)] }),
      entry('b', { evidence: [uri(randomUUID())] }),
    ];
    test.same(citedSources(organizationId, entries), [id]);
    test.same(foreignCitations(organizationId, entries), ['b']);
  },
);

t.test('findings are bounded, and the worst come first', async (test) => {
  const entries = Array.from({ length: 600 }, (_, index) => entry(`k${index}`));
  const findings = assessContext({
    organizationId,
    departments: [],
    documents: [
      { scope: 'organization', path: 'a.json', kind: 'facts', content: { entries } },
      { scope: 'growth', path: 'b.json', kind: 'notes', content: { issue: 'is no longer stored' } },
      { scope: 'growth', path: 'c.json', kind: 'notes', content: { entries: [] } },
    ],
    sources: new Map(),
    now: new Date(),
  });
  test.equal(findings.length, 501);
  test.match(findings[0], { severity: 'critical', code: 'document_unreadable', scope: 'growth', path: 'b.json' });
  test.match(findings.at(-1), { code: 'more_findings', message: /^There are 704 findings more/ });
});

t.test('a file that is no health report is told from one of an older version', async (test) => {
  const at = '2025-01-01T00:00:00.000Z';
  test.match(decodeHealthReport(Buffer.from(JSON.stringify({ version: 1, generatedAt: at, findings: ['m'] }))), {
    version: 3,
  });
  for (const wrong of ['', '{}', '{"version": 4}', JSON.stringify({ version: 2, generatedAt: at })]) {
    test.throws(() => decodeHealthReport(Buffer.from(wrong)), { name: 'DocumentError' }, wrong);
  }
});
