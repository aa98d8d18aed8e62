import type { z } from 'zod';
import type { Issue } from '../../engine/db/problem.ts';
import { issueText, UNKNOWN_FIELD } from '../../engine/issue_text.ts';
import { MAX_ISSUES, MAX_PATH, pathText, toIssues } from '../../engine/schema_issues.ts';
import { storableFault } from '../../engine/storable.ts';
import { validationFailed } from './errors.ts';

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
