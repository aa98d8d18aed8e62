import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { adminEndpoints } from '../../api/admin/endpoints.ts';
import { apiEndpoints } from '../../api/app.ts';
import { declaredErrors } from '../../api/http/declared_errors.ts';
import { systemEndpoints } from '../../api/system/public.ts';
import { RAISED_IN_SQL } from './raised_in_sql.ts';

const ROOT = path.resolve(import.meta.dirname, '../..');

/** app.issue(…, 'stale', …), app.lease_refuse('differs'). */
const ISSUES =
  /app\.(?:issue\((?:case[^;]*?end|'[\w.]+'|format\([^;]*?\)|[pv]_path(?: \|\| '[\w.]+')?),|lease_refuse\()\s*'(\w+)'/g;
/** The issues that one query makes of many artifacts. */
const ISSUES_OF_ARTIFACTS = /'code', case when [^']+'(\w+)' else '(\w+)' end/g;
/** The issues that one query makes of the operations of a plan: place, path, code. */
const ISSUES_OF_PLANS =
  /^ +select (?:-1|\w\.place)\b.*?(?:'[\w.]*'|\.place| end)(?: as at)?,\s+'([a-z_]+)'(?: as code)?,/gms;
/** Where a function decides which code an issue has: v_reason := case … then 'disabled' …; app.issue('connection', case …, …). */
const REASONS_IN_SQL = [
  /\bv_reason := ([^;]*);/g,
  /app\.issue\('\w+', (case [^;]*? end),/g,
  /function app\.(?:integration|action)_unavailable(\([\s\S]*)/g,
];
const OUTCOME_OF_CASE = /\b(?:then|else) '(\w+)'/g;
/** {code, message} of a record: the error of a run or a message, a warning of a review. */
const RECORDED_IN_SQL = /'code', '(\w+)'|"code": "(\w+)"/g;

const RAISED_IN_TYPESCRIPT = /new Problem\(\s*(\d{3}),\s*'(\w+)'/g;
/** invalid(path, message, code), issueAt(…, code), and the pairs of message and code beside it. */
const INVALID =
  /\b(?:invalid|issueAt)\((?:[^()]|\([^()]*\))*?,\s*'([a-z_]+)',?\s*\)|\breturn \['[^']+', '([a-z_]+)'\]/g;
/** notReady('connection', 'not_connected', …); its path may be a variable. */
const NOT_READY = /\bnotReady\(\s*(?:'\w+'|\w+),\s*'(\w+)'/g;
/** What a provider refuses for is the code of the issue that says so. */
const PROVIDER_REASONS = /\btype ProviderReason =([^;]*);/g;
const LITERAL = /'(\w+)'/g;
const CODE = /\bcode: (?:'([a-z_]+)'|`(\w+_)\$\{)/g;
/** Why an action cannot be sent: the reason that it is cancelled with. */
const OBSTACLE = /\breturn \{ obstacle: '([a-z_]+)' \}/g;
const FINDING = /\bfinding\(\s*'(?:critical|warning|info)',\s*'(\w+)'/g;

function texts(pattern: string, commented: RegExp): string[] {
  // Examples of bodies raise nothing.
  const files = globSync(pattern, { cwd: ROOT }).filter((file) => path.basename(file) !== 'examples.ts');
  return files.map((file) => readFileSync(path.join(ROOT, file), 'utf8').replace(commented, ''));
}

/** All groups that `pattern` finds, one after the other. */
function found(sources: readonly string[], pattern: RegExp): string[] {
  return sources.flatMap((text) =>
    [...text.matchAll(pattern)].flatMap((match) => match.slice(1).filter((group) => group !== undefined)),
  );
}

function statusAndCode(sources: readonly string[], pattern: RegExp): string[] {
  return sources.flatMap((text) => [...text.matchAll(pattern)].map(([, status, code]) => `${status} ${code}`));
}

export type Raised = Readonly<{
  /** `404 task_not_found` → the audiences whose endpoints declare it; none: it can happen anywhere. */
  codes: ReadonlyMap<string, ReadonlySet<string>>;
  /** Codes of issues, and codes in records. */
  others: ReadonlySet<string>;
}>;

/** What the code raises: by the text of the functions and modules, and by what the endpoints declare. */
export function raised(): Raised {
  const functions = texts('sql/functions/**/*.sql', /--.*$/gm);
  const modules = texts('{api,engine,jobs}/**/*.ts', /^\s*(?:\*|\/\/|\/\*).*$/gm);
  const codes = new Map<string, Set<string>>();
  for (const key of [...statusAndCode(functions, RAISED_IN_SQL), ...statusAndCode(modules, RAISED_IN_TYPESCRIPT)]) {
    codes.set(key, new Set());
  }
  for (const endpoint of [...apiEndpoints(), ...adminEndpoints(), ...systemEndpoints([])]) {
    for (const { status, code } of declaredErrors(endpoint)) {
      const key = `${status} ${code}`;
      codes.set(key, (codes.get(key) ?? new Set()).add(endpoint.audience));
    }
  }
  const named = new Set([...codes.keys()].map((key) => key.split(' ')[1]));
  const others = [
    ...[ISSUES, ISSUES_OF_ARTIFACTS, ISSUES_OF_PLANS, RECORDED_IN_SQL].flatMap((pattern) => found(functions, pattern)),
    ...found(
      REASONS_IN_SQL.flatMap((pattern) => found(functions, pattern)),
      OUTCOME_OF_CASE,
    ),
    ...[INVALID, NOT_READY, CODE, OBSTACLE, FINDING].flatMap((pattern) => found(modules, pattern)),
    ...found(found(modules, PROVIDER_REASONS), LITERAL),
  ].filter((code) => !named.has(code));
  return { codes, others: new Set(others.map((code) => (code.endsWith('_') ? `${code}…` : code))) };
}
