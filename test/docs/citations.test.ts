import { existsSync, globSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import t from 'tap';

const ROOT = path.resolve(import.meta.dirname, '../..');
const OWN_FILE = path.relative(ROOT, import.meta.filename);

const PATTERNS = [
  '*.md',
  '.env.example',
  'docs/**/*.md',
  '{api,engine,examples,jobs,scripts,sql,test}/**/*.{ts,mjs,sql,md,sh,json}',
];
const files = globSync(PATTERNS, { cwd: ROOT })
  .filter((file) => file !== OWN_FILE)
  .sort();

/** A comment may break in the middle of a citation. */
const joined = (text: string) => text.replaceAll(/\n[ \t]*(?:--|\*|\/\/)?[ \t]*/g, ' ');
const texts = new Map(files.map((file) => [file, joined(readFileSync(path.join(ROOT, file), 'utf8'))]));

const interfacePage = readFileSync(path.join(ROOT, 'docs/interface.md'), 'utf8');
const headings = interfacePage.split('\n').filter((line) => /^#{2,4} \d/.test(line));
const sections = new Set(headings.map((line) => /\d+(?:\.\d+)*/.exec(line)?.[0]));
const decisions = readdirSync(path.join(ROOT, 'docs/decisions'));

/** The anchor that a Markdown page makes of a heading. */
function anchorOf(heading: string): string {
  const words = heading.replace(/^#+ /, '').toLowerCase();
  return words.replaceAll(/[^\w\s-]/g, '').replaceAll(/\s/g, '-');
}

/** Numbers that a text cites of docs/interface.md: one, or a list of them. */
function citedSections(text: string): string[] {
  const list = /interface\.md(?:#[\w-]+)?[`)\]]* (\d+(?:\.\d+)*(?:(?:,| and| or| to) \d+(?:\.\d+)*)*)/g;
  return [...text.matchAll(list)].flatMap(([, numbers = '']) => numbers.match(/\d+(?:\.\d+)*/g) ?? []);
}

/** Paths below docs/ that a text cites: a page, or a decision by its number. */
function citedPages(text: string): string[] {
  const cited = /(?<![\w/.-])(?:\.\.?\/)*(docs\/(?:[\w./-]+\.md|decisions\/[\w-]+))/g;
  return [...text.matchAll(cited)].map(([, page = '']) => page);
}

function pageExists(page: string): boolean {
  const number = /^docs\/decisions\/(\d{4})$/.exec(page)?.[1];
  if (number !== undefined) return decisions.some((name) => name.startsWith(`${number}-`));
  return existsSync(path.join(ROOT, page));
}

/** Citations of papers that a reader of this repository does not have. */
const ABSENT = [
  /\b(?:contract|decisions|architecture|house|stack|style)(?:\.md)? \d+(?:\.\d+)*(?![\d%])/gi,
  /(?<!\w)(?:shared|design|spec)\/[\w-]+\.md/g,
  /\.\.\/shared\b/g,
  /§/g,
];
const absent = (text: string) => ABSENT.flatMap((pattern) => [...text.matchAll(pattern)].map(([found]) => found));

function collect(find: (text: string, file: string) => readonly string[]): string[] {
  return [...texts].flatMap(([file, text]) => find(text, file).map((found) => `${file}: ${found}`));
}

t.test('citations are recognized', (test) => {
  test.same(citedSections(joined('-- so (docs/interface.md\n-- 3.5). `docs/interface.md` 2.9.5 and 4.13.2')), [
    '3.5',
    '2.9.5',
    '4.13.2',
  ]);
  test.same(citedSections('[interface.md](interface.md#310-organization) 3.10'), ['3.10']);
  test.same(citedPages('see docs/deploy.md, ../docs/decisions/0002-a.md and docs/decisions/0003'), [
    'docs/deploy.md',
    'docs/decisions/0002-a.md',
    'docs/decisions/0003',
  ]);
  test.same(citedPages('/docs/start.js scripts/docs/errors.ts'), []);
  test.same(absent('contract 4.6, Decisions 4, design/postgres.md'), [
    'contract 4.6',
    'Decisions 4',
    'design/postgres.md',
  ]);
  test.same(absent('Postgres 15, a contract'), []);
  test.equal(anchorOf('### 2.18 Audit entry'), '218-audit-entry');
  test.end();
});

t.test('pages that are cited exist', (test) => {
  test.ok(collect(citedPages).length > 80);
  test.same(
    collect((text) => citedPages(text).filter((page) => !pageExists(page))),
    [],
  );
  test.end();
});

t.test('sections that are cited exist', (test) => {
  test.ok(collect(citedSections).length > 70);
  test.same(
    collect((text) => citedSections(text).filter((number) => !sections.has(number))),
    [],
  );
  test.end();
});

t.test('sections in the parentheses of the glossary exist', (test) => {
  const glossary = texts.get('docs/glossary.md') ?? '';
  const cited = [...glossary.matchAll(/\((\d[\d., ]*)\)(?! \*)/g)].flatMap(([, list = '']) => list.split(', '));
  test.ok(cited.length > 40);
  // (1) and (2) number the meanings of a word.
  test.same(
    cited.filter((number) => !sections.has(number) && !/^[12]$/.test(number)),
    [],
  );
  test.end();
});

t.test('links of the documents lead somewhere', (test) => {
  const anchors = new Set(headings.map(anchorOf));
  const dead = collect((text, file) => {
    if (!file.endsWith('.md')) return [];
    const links = [...text.matchAll(/\]\(([^)\s]+)\)/g)].map(([, link = '']) => link);
    return links.filter((link) => {
      if (/^[a-z]+:/.test(link)) return false;
      const [target = '', anchor] = link.split('#');
      const found = path.resolve(ROOT, path.dirname(file), target);
      if (target !== '' && !existsSync(found)) return true;
      return anchor !== undefined && /interface\.md$/.test(target || file) && !anchors.has(anchor);
    });
  });
  test.same(dead, []);
  test.end();
});

t.test('files that the README and CONTRIBUTING name exist', (test) => {
  const folder = /^(?:api|docs|engine|examples|jobs|scripts|sql|test)\/[\w./-]+$/;
  const named = ['README.md', 'CONTRIBUTING.md'].flatMap((page) =>
    [...(texts.get(page) ?? '').matchAll(/`([^`\s]+)`/g)].flatMap(([, name = '']) => (folder.test(name) ? [name] : [])),
  );
  test.ok(named.length > 30);
  test.same(
    named.filter((name) => !existsSync(path.join(ROOT, name))),
    [],
  );
  test.end();
});

t.test(
  'the README of the worker, which is copied, names each of its files and of those that it needs beside them',
  (test) => {
    const read = (name: string) => readFileSync(path.join(ROOT, 'scripts/worker', name), 'utf8');
    const page = read('README.md');
    const files = readdirSync(path.join(ROOT, 'scripts/worker')).filter((name) => name.endsWith('.ts'));
    const rows = page.split('\n').flatMap((line) => (line.startsWith('| `') ? [line.split('|')[1] ?? ''] : []));
    const described = rows.flatMap((cell) => [...cell.matchAll(/`([^`]+)`/g)].map(([, name]) => name));
    test.same(described.toSorted(), files.toSorted());
    const imported = files.flatMap((name) =>
      [...read(name).matchAll(/ from '(\.\.\/[^']+)'/g)].map(([, from = '']) => from),
    );
    const needed = new Set(imported.map((from) => from.replace('../../', '')));
    const [, number, list = ''] = /imports (\w+) files of the rest of\nthis project: (.*?)\. Copy/s.exec(page) ?? [];
    test.same([...list.matchAll(/`([^`]+\.ts)`/g)].map(([, name]) => name).toSorted(), [...needed].toSorted());
    test.equal(number, ['none', 'one', 'two', 'three', 'four', 'five', 'six', 'seven', 'eight'][needed.size]);
    test.end();
  },
);

t.test('nothing cites a paper that is not in the repository', (test) => {
  test.same(collect(absent), []);
  test.end();
});
