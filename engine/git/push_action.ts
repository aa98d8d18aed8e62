import { z } from 'zod';
import { canonicalSha256 } from '../canonical_json.ts';

/** What an action of kind git_push has for a tool. */
export const PUSH_TOOL = 'git.push';
/** The argument that the file of such an action is for. */
export const PACK_ARGUMENT = 'pack';

const oid = z.string().regex(/^[0-9a-f]{40}$/);
const branch = z.string().regex(/^refs\/heads\/[^\0-\x20\x7f]+$/);

/** Arguments of an action that pushes: what is done (`repository`, `refs`), and what a person reads of it. */
export const pushArguments = z.object({
  /** `owner/name` */
  repository: z.string().regex(/^[A-Za-z0-9-]{1,39}\/[A-Za-z0-9_.-]{1,100}$/),
  refs: z
    .array(
      z.object({
        ref: branch,
        /** Null: the branch is new. */
        oldOid: oid.nullable(),
        newOid: oid,
        /** Null: the repository has none yet. */
        isDefaultBranch: z.boolean().nullable(),
      }),
    )
    .min(1),
  commits: z.array(z.object({ ref: z.string(), oid, author: z.string(), authoredAt: z.string(), subject: z.string() })),
  commitCount: z.int(),
  /** Null of files that are no text. */
  files: z.array(
    z.object({ ref: z.string(), path: z.string(), additions: z.int().nullable(), deletions: z.int().nullable() }),
  ),
  /** Of all files; null: more than are counted. */
  changes: z.object({ files: z.int(), additions: z.int(), deletions: z.int() }).nullable(),
});
export type PushArguments = z.output<typeof pushArguments>;

/** The default branch is what others build on; in a repository without one the first branch becomes it. */
export function riskOf({ refs }: PushArguments): 'external' | 'high' {
  return refs.some(({ isDefaultBranch }) => isDefaultBranch !== false) ? 'high' : 'external';
}

/** Equal pushes have the same: names of commits stand for all that they hold, however it was packed. */
export function pushDigest({ repository, refs }: PushArguments): string {
  const wanted = refs
    .map(({ ref, oldOid, newOid }) => ({ ref, oldOid, newOid }))
    .sort((a, b) => (a.ref < b.ref ? -1 : 1));
  return canonicalSha256({ repository, refs: wanted });
}

export function argumentsDigest(given: PushArguments): string {
  return canonicalSha256(given);
}
