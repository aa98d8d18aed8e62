import { type Issue, Problem } from '../db/problem.ts';
import type { FileRule, ToolRuntime } from '../providers/tool.ts';
import type { Gateway, GatewayCall, ToolRequest } from './gateway.ts';
import { type FoundFile, findFiles } from './uploads.ts';

/** A file that an action sends: a stored one of the invocation. */
export type NamedFile = FoundFile & Readonly<{ argument: string }>;

const issueOf = (argument: string, code: string, message: string): Issue => ({
  path: `files.${argument}`,
  code,
  message,
});

function refuse(issues: readonly Issue[]): void {
  if (issues.length === 0) return;
  throw new Problem(400, 'validation_failed', 'The files are not those of the tool.', issues);
}

const rulesOf = (runtime: ToolRuntime): Readonly<Record<string, FileRule>> =>
  (runtime.effect === 'write' ? runtime.files : undefined) ?? {};

/** @throws Problem 400 for an argument that is not of the tool, and for one that it requires */
export function checkFileNames(runtime: ToolRuntime, { files = {} }: ToolRequest): void {
  const rules = rulesOf(runtime);
  const unknown = Object.keys(files).filter((argument) => !Object.hasOwn(rules, argument));
  const missing = Object.keys(rules).filter((argument) => rules[argument]?.required && !Object.hasOwn(files, argument));
  refuse([
    ...unknown.map((argument) => issueOf(argument, 'unrecognized_keys', 'the tool takes no such file')),
    ...missing.map((argument) => issueOf(argument, 'invalid_type', 'the tool requires this file')),
  ]);
}

function ruleIssues({ argument, sizeBytes, contentType }: NamedFile, { maxBytes, contentTypes }: FileRule): Issue[] {
  const tooLarge = maxBytes !== undefined && sizeBytes > maxBytes;
  // Its bytes were compared with the type when they were stored.
  const otherType = contentTypes !== undefined && !contentTypes.includes(contentType);
  return [
    ...(tooLarge ? [issueOf(argument, 'too_big', `has ${sizeBytes} bytes where the tool takes ${maxBytes}`)] : []),
    ...(otherType ? [issueOf(argument, 'invalid_value', `the tool takes ${contentTypes.join(', ')}`)] : []),
  ];
}

/**
 * The files that a call names, checked by the rules of its tool.
 * @throws Problem 400 with an issue an argument, 404 for one that is no stored file of the invocation
 */
export async function fileArguments(
  gateway: Gateway,
  at: GatewayCall,
  runtime: ToolRuntime,
  request: ToolRequest,
): Promise<readonly NamedFile[]> {
  checkFileNames(runtime, request);
  const named = Object.entries(request.files ?? {});
  if (named.length === 0) return [];
  const rules = rulesOf(runtime);
  const found = await findFiles(
    gateway,
    at,
    named.map(([, fileId]) => fileId),
  );
  const files = found.map((file, index): NamedFile => ({ ...file, argument: named[index]?.[0] ?? '' }));
  refuse(files.flatMap((file) => ruleIssues(file, rules[file.argument] ?? {})));
  return files;
}
