import type { z } from 'zod';
import type { Issue } from '../../engine/db/problem.ts';
import { issueText, UNKNOWN_FIELD } from '../../engine/issue_text.ts';
import { validationFailed } from './errors.ts';

const MAX_ISSUES = 100;
const MAX_PATH = 200;
const MAX_DEPTH = 64;

function pathText(path: readonly PropertyKey[]): string {
  return path.map(String).join('.').slice(0, MAX_PATH);
}

/** How much is wrong: a field that is not known counts like one that is wrong. */
function faults(issues: readonly z.core.$ZodIssue[]): number {
  return issues.reduce((sum, issue) => sum + (issue.code === 'unrecognized_keys' ? issue.keys.length : 1), 0);
}

function issuesOf(issue: z.core.$ZodIssue, prefix: readonly PropertyKey[]): Issue[] {
  const path = [...prefix, ...issue.path];
  if (issue.code === 'unrecognized_keys') {
    // One for each, so that a form can point at every wrong field.
    return issue.keys.slice(0, MAX_ISSUES).map((key) => ({
      path: pathText([...path, key]),
      message: UNKNOWN_FIELD,
      code: issue.code,
    }));
  }
  if (issue.code === 'invalid_union') {
    // The shape that was nearly met says more than "matches none"; of equal ones the first.
    const nearest = issue.errors.filter((errors) => errors.length > 0).sort((a, b) => faults(a) - faults(b))[0];
    if (nearest) return nearest.flatMap((inner) => issuesOf(inner, path));
  }
  return [{ path: pathText(path), message: issue.message, code: issue.code }];
}

/** The issues of a failed check as responses carry them. */
export function toIssues(error: z.ZodError): Issue[] {
  return error.issues.flatMap((issue) => issuesOf(issue, []));
}

/**
 * Checks parts of a request together, so that the client sees everything that is wrong at once.
 * @throws Problem 400 `validation_failed`
 */
export function checkParts<T extends Record<string, readonly [z.ZodType, unknown]>>(
  parts: T,
): { [K in keyof T]: z.output<T[K][0]> } {
  const values: Record<string, unknown> = {};
  const issues: Issue[] = [];
  for (const [name, [schema, value]] of Object.entries(parts)) {
    const result = schema.safeParse(value, { error: issueText });
    if (result.success) values[name] = result.data;
    else issues.push(...toIssues(result.error));
  }
  if (issues.length > 0) throw validationFailed(issues.slice(0, MAX_ISSUES));
  return values as { [K in keyof T]: z.output<T[K][0]> };
}

/** A place in a JSON value: linked, so that a path is written out for an issue alone. */
type Place = Readonly<{ value: object; key: string; depth: number; parent: Place | undefined }>;

function issueAt(place: Place | undefined, key: string | undefined, message: string, code: string): Issue {
  const path = key === undefined ? [] : [key];
  for (let at = place; at?.parent; at = at.parent) path.unshift(at.key);
  return { path: pathText(path.slice(0, MAX_PATH)), message, code };
}

/** Why a text or number cannot be stored. */
function scalarFault(value: unknown): readonly [message: string, code: string] | undefined {
  if (typeof value === 'string') {
    if (value.includes('\0')) return ['must not hold a NUL character', 'invalid_text'];
    if (!value.isWellFormed()) return ['holds half of a surrogate pair', 'invalid_text'];
  }
  if (typeof value === 'number' && !Number.isFinite(value)) return ['is too large a number', 'too_big'];
  return undefined;
}

function* entries(value: object): Generator<readonly [string, unknown]> {
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index += 1) yield [String(index), value[index]];
  } else {
    for (const key of Object.keys(value)) yield [key, (value as Record<string, unknown>)[key]];
  }
}

/**
 * What JSON allows and Postgres, or our own code, cannot take: NUL and broken surrogates in any text, numbers that
 * became infinite, nesting that would overflow the stack of whoever walks it, and keys named `__proto__`.
 * Walks without recursion. Returns the first issue.
 */
export function storableIssue(root: unknown): Issue | undefined {
  const fault = scalarFault(root);
  if (fault) return issueAt(undefined, undefined, ...fault);
  if (typeof root !== 'object' || root === null) return undefined;
  const pending: Place[] = [{ value: root, key: '', depth: 0, parent: undefined }];
  for (let place = pending.pop(); place; place = pending.pop()) {
    if (place.depth > MAX_DEPTH) {
      return issueAt(place, undefined, `is nested deeper than ${MAX_DEPTH} levels`, 'too_deep');
    }
    for (const [key, value] of entries(place.value)) {
      if (key === '__proto__') return issueAt(place, key, UNKNOWN_FIELD, 'unrecognized_keys');
      const wrongKey = scalarFault(key);
      if (wrongKey) return issueAt(place, undefined, ...wrongKey);
      const wrong = scalarFault(value);
      if (wrong) return issueAt(place, key, ...wrong);
      if (typeof value === 'object' && value !== null) {
        pending.push({ value, key, depth: place.depth + 1, parent: place });
      }
    }
  }
  return undefined;
}
