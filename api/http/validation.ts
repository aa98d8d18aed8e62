import type { z } from 'zod';
import type { Issue } from '../../engine/db/problem.ts';
import { validationFailed } from './errors.ts';

const MAX_ISSUES = 100;
const MAX_PATH = 200;
const MAX_DEPTH = 64;

function pathText(path: readonly PropertyKey[]): string {
  return path.map(String).join('.').slice(0, MAX_PATH);
}

function issuesOf(issue: z.core.$ZodIssue, prefix: readonly PropertyKey[]): Issue[] {
  const path = [...prefix, ...issue.path];
  if (issue.code === 'unrecognized_keys') {
    // One for each, so that a form can point at every wrong field.
    return issue.keys.slice(0, MAX_ISSUES).map((key) => ({
      path: pathText([...path, key]),
      message: 'is not a known field',
      code: issue.code,
    }));
  }
  if (issue.code === 'invalid_union') {
    // The shape that was nearly met says more than "matches none".
    const nearest = issue.errors.filter((errors) => errors.length > 0).sort((a, b) => a.length - b.length)[0];
    if (nearest) return nearest.flatMap((inner) => issuesOf(inner, path));
  }
  const missing = issue.code === 'invalid_type' && issue.message.endsWith('received undefined');
  return [{ path: pathText(path), message: missing ? 'is required' : issue.message, code: issue.code }];
}

/** The issues of a failed check in the contract's shape. */
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
    const result = schema.safeParse(value);
    if (result.success) values[name] = result.data;
    else issues.push(...toIssues(result.error));
  }
  if (issues.length > 0) throw validationFailed(issues.slice(0, MAX_ISSUES));
  return values as { [K in keyof T]: z.output<T[K][0]> };
}

function textIssue(text: string, path: readonly PropertyKey[]): Issue | undefined {
  if (text.includes('\0'))
    return { path: pathText(path), message: 'must not hold a NUL character', code: 'invalid_text' };
  if (!text.isWellFormed()) {
    return { path: pathText(path), message: 'holds half of a surrogate pair', code: 'invalid_text' };
  }
  return undefined;
}

function valueIssue(value: unknown, path: readonly PropertyKey[]): Issue | undefined {
  if (typeof value === 'string') return textIssue(value, path);
  if (typeof value === 'number' && !Number.isFinite(value)) {
    return { path: pathText(path), message: 'is too large a number', code: 'too_big' };
  }
  if (path.length > MAX_DEPTH) {
    return { path: pathText(path.slice(0, 8)), message: `is nested deeper than ${MAX_DEPTH} levels`, code: 'too_deep' };
  }
  return undefined;
}

/**
 * What JSON allows and Postgres, or our own code, cannot take: NUL and broken surrogates in any text, numbers that
 * became infinite, nesting that would overflow the stack of whoever walks it, and keys named `__proto__`.
 * Walks without recursion. Returns the first issue.
 */
export function storableIssue(root: unknown): Issue | undefined {
  const pending: { value: unknown; path: readonly PropertyKey[] }[] = [{ value: root, path: [] }];
  for (let entry = pending.pop(); entry; entry = pending.pop()) {
    const { value, path } = entry;
    const issue = valueIssue(value, path);
    if (issue) return issue;
    if (typeof value !== 'object' || value === null) continue;
    for (const key of Object.keys(value)) {
      const inner = [...path, key];
      if (key === '__proto__')
        return { path: pathText(inner), message: 'is not a known field', code: 'unrecognized_keys' };
      const wrongKey = textIssue(key, path);
      if (wrongKey) return wrongKey;
      pending.push({ value: (value as Record<string, unknown>)[key], path: inner });
    }
  }
  return undefined;
}
