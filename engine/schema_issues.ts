import type { z } from 'zod';
import type { Issue } from './db/problem.ts';
import { UNKNOWN_FIELD } from './issue_text.ts';

export const MAX_ISSUES = 100;
export const MAX_PATH = 200;

/** The path of an issue as responses carry it. */
export function pathText(path: readonly PropertyKey[]): string {
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

/** The issues of a failed check as responses carry them, below `prefix`. */
export function toIssues(error: z.ZodError, ...prefix: readonly string[]): Issue[] {
  return error.issues.flatMap((issue) => issuesOf(issue, prefix));
}
