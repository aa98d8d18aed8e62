import { createHash } from 'node:crypto';
import { type Storage, StorageMissingError } from '../storage/index.ts';
import {
  type JsonPointerCheck,
  type OutputCheck,
  type OutputFileCriterion,
  outputFileCriterionSchema,
} from './criteria.ts';
import { oneLine } from './judge.ts';
import { type JudgeBudget, type JudgeJson, jsonJudge, judgeBudget } from './thread.ts';

const MAX_JSON_BYTES = 16 * 1024 * 1024;
const MAX_SUMMARY = 500;

/** An output as it was recorded when its bytes arrived: size, digest and type are the backend's own. */
export type RecordedOutput = Readonly<{
  path: string;
  size: number;
  sha256: string;
  mediaType: string;
  storageKey: string;
}>;

/** File evidence and check (docs/interface.md 2.10.4). */
export type FileEvidence = Readonly<{
  kind: 'file';
  runId: string;
  path: string;
  uri: string;
  size: number;
  sha256: string;
  mediaType: string;
}>;

export type AcceptanceCheck = Readonly<{
  criterionIndex: number;
  evaluator: 'backend';
  status: 'passed' | 'failed';
  summary: string;
  evidence: FileEvidence[];
}>;

export type AcceptanceInput = Readonly<{
  organizationId: string;
  runId: string;
  /** `spec.acceptanceCriteria` as stored. */
  criteria: readonly unknown[];
  outputs: readonly RecordedOutput[];
  signal?: AbortSignal | undefined;
}>;

export type EvaluateAcceptance = (input: AcceptanceInput) => Promise<AcceptanceCheck[]>;

/** The logical address of an output; it says nothing about where the bytes lie. */
export function outputUri(organizationId: string, runId: string, path: string): string {
  return `org://${organizationId}/runs/${runId}/outputs/${path.split('/').map(encodeURIComponent).join('/')}`;
}

/** The bytes of a document, or null with what is wrong with them; `problem` null and no bytes: sound, and not kept. */
type ReadBack = Readonly<{ problem: string | null; bytes: Uint8Array | null }>;

/** Reads stored bytes once, hashing them, and keeps them when `keep` says so. */
async function readBack(
  storage: Storage,
  output: RecordedOutput,
  keep: boolean,
  signal?: AbortSignal,
): Promise<ReadBack> {
  const hash = createHash('sha256');
  const kept: Uint8Array[] = [];
  let size = 0;
  try {
    for await (const chunk of await storage.get(output.storageKey, { signal })) {
      hash.update(chunk);
      size += chunk.length;
      // Never more than was recorded, even when the file has grown since.
      if (keep && size <= output.size) kept.push(chunk);
    }
  } catch (error) {
    if (error instanceof StorageMissingError) return { problem: 'its bytes are no longer stored', bytes: null };
    throw error;
  }
  if (size !== output.size || hash.digest('hex') !== output.sha256) {
    return { problem: 'its stored bytes are not the ones that were recorded', bytes: null };
  }
  return { problem: null, bytes: keep ? Buffer.concat(kept) : null };
}

function isOfType(mediaType: string, wanted: string): boolean {
  const [type, subtype] = wanted.toLowerCase().split('/');
  const found = mediaType.toLowerCase();
  return subtype === '*' ? found.startsWith(`${type}/`) : found === wanted.toLowerCase();
}

function isPointerCheck(check: OutputCheck): check is JsonPointerCheck {
  return check.kind === 'json_pointer';
}

/** What does not hold of `checks`, as sentences. */
async function failuresOf(
  checks: readonly OutputCheck[],
  output: RecordedOutput,
  bytes: Uint8Array | null,
  judgeJson: JudgeJson,
  budget: JudgeBudget,
): Promise<string[]> {
  const failures: string[] = [];
  for (const check of checks) {
    if (check.kind !== 'media_type' || check.anyOf.some((wanted) => isOfType(output.mediaType, wanted))) continue;
    failures.push(`expected media type ${check.anyOf.join(' or ')}, found ${output.mediaType}`);
  }
  const pointers = checks.filter(isPointerCheck);
  if (pointers.length === 0) return failures;
  if (bytes === null) {
    return [...failures, `it has ${output.size} bytes, and JSON is evaluated up to ${MAX_JSON_BYTES}`];
  }
  const judged = await judgeJson(bytes, pointers, budget);
  if ('problem' in judged) return [...failures, judged.problem];
  return [...failures, ...judged.results.filter((result) => result !== null)];
}

function describeOutputs(outputs: readonly RecordedOutput[]): string {
  if (outputs.length === 0) return 'the run stored no files';
  const some = outputs.slice(0, 5).map((output) => output.path);
  const more = outputs.length > some.length ? ` and ${outputs.length - some.length} more` : '';
  return `the run stored ${some.join(', ')}${more}`;
}

function checkOf(
  criterionIndex: number,
  name: string,
  failures: readonly string[],
  evidence: FileEvidence[],
  held: number,
): AcceptanceCheck {
  const good = held > 1 ? `all ${held} checks hold` : held === 1 ? 'its check holds' : 'it is stored';
  const verdict = failures.length > 0 ? failures.join('; ') : good;
  const status = failures.length > 0 ? 'failed' : 'passed';
  return {
    criterionIndex,
    evaluator: 'backend',
    status,
    summary: oneLine(`${name}: ${verdict}`, MAX_SUMMARY),
    evidence,
  };
}

/**
 * Makes the evaluation of acceptance criteria (docs/interface.md 2.9.5 and 4.13.2): one check for each `output_file` criterion,
 * decided on the stored bytes, which are hashed again as they are read; none for criteria of other kinds.
 * The evaluation throws only where storage fails: then nothing is decided and the call may be sent again.
 */
export function acceptanceEvaluator(options: Readonly<{ storage: Storage; threads?: number }>): EvaluateAcceptance {
  const judgeJson = jsonJudge(options.threads ?? 2);

  async function evaluateOne(
    input: AcceptanceInput,
    criterion: OutputFileCriterion,
    sound: Set<string>,
    budget: JudgeBudget,
  ) {
    const output = input.outputs.find((candidate) => candidate.path === criterion.path);
    if (!output) return { failures: [`no such output; ${describeOutputs(input.outputs)}`], evidence: [] };
    const { path, size, sha256, mediaType } = output;
    const uri = outputUri(input.organizationId, input.runId, path);
    const evidence: FileEvidence[] = [{ kind: 'file', runId: input.runId, path, uri, size, sha256, mediaType }];
    const keep = size <= MAX_JSON_BYTES && criterion.checks.some(isPointerCheck);
    // A file of gigabytes is hashed once, however many criteria name it.
    const known: ReadBack = { problem: null, bytes: null };
    const read = !keep && sound.has(path) ? known : await readBack(options.storage, output, keep, input.signal);
    if (read.problem !== null) return { failures: [read.problem], evidence };
    sound.add(path);
    return { failures: await failuresOf(criterion.checks, output, read.bytes, judgeJson, budget), evidence };
  }

  return async (input) => {
    const checks: AcceptanceCheck[] = [];
    const sound = new Set<string>();
    const budget = judgeBudget(input.organizationId);
    // One after the other: at most one document of a call is in memory.
    for (const [criterionIndex, given] of input.criteria.entries()) {
      if ((given as { kind?: unknown } | null)?.kind !== 'output_file') continue;
      const { data } = outputFileCriterionSchema.safeParse(given);
      if (!data) {
        // It was valid when the task was made; what cannot be read now must not count as met.
        checks.push(checkOf(criterionIndex, 'output file', ['this criterion is malformed'], [], 0));
        continue;
      }
      const { failures, evidence } = await evaluateOne(input, data, sound, budget);
      checks.push(checkOf(criterionIndex, data.path, failures, evidence, data.checks.length));
    }
    return checks;
  };
}
