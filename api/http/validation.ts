import type { z } from 'zod';
import type { Issue } from '../../engine/db/problem.ts';
import { issueText, UNKNOWN_FIELD } from '../../engine/issue_text.ts';
import { storableFault } from '../../engine/storable.ts';
import { validationFailed } from './errors.ts';

const MAX_ISSUES = 100;
const MAX_PATH = 200;

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

/**
 * What JSON allows and Postgres, or our own code, cannot take, and keys named `__proto__`, which are fields of nothing of ours.
 * Returns the first issue.
 */
export function storableIssue(root: unknown): Issue | undefined {
  const fault = storableFault(root, (key) => (key === '__proto__' ? UNKNOWN_FIELD : undefined));
  if (!fault) return undefined;
  const { path, message, code } = fault;
  return { path: pathText(path.slice(0, MAX_PATH)), message, code };
}
