import type { PushRequest, RefUpdate } from './push_request.ts';

export const MAX_UPDATES = 20;
const MAX_REF_LENGTH = 250;

/** Why updates are refused, by ref: sentences that a person reads. Empty: none is. */
export type Refusals = ReadonlyMap<string, string>;

/** The rules of git-check-ref-format for what lies below `refs/heads/`. */
function isBranchName(name: string): boolean {
  if (/[\0- \x7f~^:?*[\\]|\.\.|@\{|\/\/|[/.]$/.test(name)) return false;
  return name.split('/').every((part) => part !== '' && !part.startsWith('.') && !part.endsWith('.lock'));
}

function refusalOf({ ref, newOid }: RefUpdate): string | undefined {
  if (newOid === null) return 'the gateway deletes no refs';
  if (ref.startsWith('refs/tags/')) return 'the gateway takes no tags, only branches';
  if (!ref.startsWith('refs/heads/')) return 'the gateway takes only refs below refs/heads/';
  if (ref.length > MAX_REF_LENGTH || !isBranchName(ref.slice('refs/heads/'.length)))
    return 'is not the name of a branch';
  return undefined;
}

/** Every push is atomic: what is wrong with one of its updates is wrong with all. */
export function atomically(updates: readonly RefUpdate[], found: Refusals): Refusals {
  if (found.size === 0) return found;
  return new Map(
    updates.map(({ ref }) => [ref, found.get(ref) ?? 'not applied: the push is atomic, and another update is refused']),
  );
}

export const everyUpdate = (updates: readonly RefUpdate[], reason: string): Refusals =>
  new Map(updates.map(({ ref }) => [ref, reason]));

/** What of a push is refused whatever the repository holds (docs/interface.md 4.14). */
export function refusalsOf({ updates, options }: Pick<PushRequest, 'updates' | 'options'>): Refusals {
  if (options.length > 0) return everyUpdate(updates, 'the gateway takes no push options');
  if (updates.length > MAX_UPDATES)
    return everyUpdate(updates, `the gateway takes at most ${MAX_UPDATES} updates a push`);
  const found = new Map<string, string>();
  const seen = new Set<string>();
  for (const update of updates) {
    const reason = seen.has(update.ref) ? 'is updated twice' : refusalOf(update);
    if (reason !== undefined) found.set(update.ref, reason);
    seen.add(update.ref);
  }
  return atomically(updates, found);
}

/** What of a push does not fit the refs of the provider. */
export function staleRefusals(updates: readonly RefUpdate[], refs: ReadonlyMap<string, string>): Refusals {
  const found = new Map<string, string>();
  for (const { ref, oldOid } of updates) {
    const current = refs.get(ref) ?? null;
    if (current === oldOid) continue;
    found.set(
      ref,
      current === null ? 'the branch is gone: fetch first' : `fetch first: the branch is at ${current.slice(0, 12)}`,
    );
  }
  return atomically(updates, found);
}
