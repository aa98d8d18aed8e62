import { type Finding, findings, type Source } from './text.ts';

const KEYWORDS = [
  'ALL ALTER AND ANY ARRAY AS ASC BEGIN BETWEEN BY CASE CHECK COALESCE COMMENT CONFLICT CONSTRAINT CREATE CROSS DECLARE',
  'DEFAULT DELETE DESC DISTINCT DO DROP ELSE ELSIF END EXCEPTION EXISTS FALSE FOR FOREIGN FROM FUNCTION GRANT GROUP HAVING',
  'IF IN INDEX INNER INSERT INTO IS JOIN KEY LANGUAGE LATERAL LEFT LIKE LIMIT LOOP NOT NULL ON OR ORDER PERFORM POLICY',
  'PRIMARY RAISE REFERENCES RETURN RETURNING RETURNS REVOKE SELECT SET TABLE THEN TO TRIGGER TRUE UNION UNIQUE UPDATE USING',
  'VALUES VIEW WHEN WHERE WHILE WITH',
]
  .join(' ')
  .split(' ');
const SHOUTED = new RegExp(`(?<![\\w"])(?:${KEYWORDS.join('|')})(?![\\w"])`, 'g');
const LONGEST_LINE = 140;

/** What holds for every file. */
export function general(source: Source): Finding[] {
  const found = [
    ...findings(source, SHOUTED, ([word]) => `keywords are lower-case: ${word.toLowerCase()}`),
    // Pages go by keys. "offset 0" keeps the planner from merging a subquery, and skips nothing.
    ...findings(source, /\boffset\s+(?!0\b)/g, () => 'no offset: pages begin after a key'),
    ...findings(source, /\t/g, () => 'no tabs'),
  ];
  if (!source.text.endsWith('\n') && source.text !== '')
    found.push({ at: source.text.length, message: 'no newline at the end of the file' });
  let at = 0;
  for (const line of source.text.split('\n')) {
    if (/\s$/.test(line)) found.push({ at, message: 'trailing blanks' });
    if (line.length > LONGEST_LINE && !line.includes("'")) {
      found.push({ at, message: `a line has at most ${LONGEST_LINE} characters` });
    }
    at += line.length + 1;
  }
  return found;
}

export type Names = Readonly<{ tables: ReadonlySet<string>; functions: ReadonlySet<string> }>;

/** The tables and functions of the schema, by the files that make them. */
export function namesIn(sources: readonly Source[]): Names {
  const all = (pattern: RegExp) =>
    new Set(sources.flatMap(({ code }) => [...code.matchAll(pattern)].map(([, name = '']) => name)));
  return {
    tables: all(/\bcreate table app\.(\w+)/g),
    functions: all(/\bcreate (?:or replace )?function app\.(\w+)/g),
  };
}

/** The search path of our functions is pg_catalog, so a name without its schema is not found when they run. */
export function qualified(source: Source, { tables, functions }: Names): Finding[] {
  const own = new Set(
    [...source.code.matchAll(/\b(\w+)(?: \([^)]*\))? as (?:not )?(?:materialized )?\(/g)].map(([, name]) => name),
  );
  return [
    ...findings(source, /\b(?:from|join|into|update|only)\s+(\w+)\b(?!\s*[.(])/g, ([, name = '']) =>
      tables.has(name) && !own.has(name) ? `${name} without its schema: app.${name}` : undefined,
    ),
    ...findings(source, /(?<![\w.])(\w+)\(/g, ([, name = '']) =>
      functions.has(name) ? `${name}(…) without its schema: app.${name}` : undefined,
    ),
  ];
}
