import type { Request } from 'express';
import { z } from 'zod';
import type { Config } from '../../engine/config.ts';
import { call, type Queries } from '../../engine/db/call.ts';
import type { Problem } from '../../engine/db/problem.ts';
import { byteSearch, containsAny, digestsOf, mayEndToken, tokensOfLease } from '../../engine/run_tokens.ts';
import { bearerToken } from './auth/bearer.ts';
import type { Audience } from './caller.ts';
import type { Endpoint } from './endpoint.ts';
import { invalid } from './errors.ts';
import { type PlacedText, textsOf } from './texts.ts';

const heldSchema = z.object({ held: z.array(z.string()) });
const uuidFormat = z.guid();
/** Before a text that begins with so many hex digits a token may have begun. */
const HEX_START = /^[0-9a-f]{8}/i;
const LONGEST_FORM = 64;
const MAX_PATH = 200;
const HANDED_IN: ReadonlySet<Audience> = new Set(['worker', 'agent', 'gateway']);

/**
 * Keeps tokens out of what a worker or agent hands in: whoever reads it could act with them. Those of the settings and of the call
 * itself are known, and are found anywhere. Those of other runs are found by their form, and compared by digest with those that
 * are held. The refusal names the place, and never the value.
 */
export type TokenGuard = Readonly<{
  /** Path, query and headers, by name. @throws Problem 400 */
  checkUrl(values: Readonly<Record<string, string | undefined>>): Promise<void>;
  /** The body, before anything in it is looked at by another rule, which might repeat it. @throws Problem 400 */
  checkBody(value: unknown): Promise<void>;
  /** A text that continues another one, after `checkBody`. `before` is asked for where the two may make up a token. */
  checkContinued(field: string, text: string, before: () => Promise<string>): Promise<void>;
  /** For bytes as they pass by, without the digests, of which files are full: the refusal of a chunk in which a token ends. */
  search(): (chunk: Buffer) => Problem | undefined;
}>;

/** The tokens of the settings: each opens the service for whoever reads it. */
export function settingsTokens({
  agentServiceTokens,
  ownerAuth,
  adminTokens,
  metricsTokens,
}: Config): readonly string[] {
  const owners = ownerAuth.mode === 'jwt' ? [] : ownerAuth.tokens;
  return [...agentServiceTokens, ...owners, ...adminTokens.map(({ token }) => token), ...metricsTokens];
}

function tokenFound(path: string): Problem {
  return invalid(path.slice(0, MAX_PATH), 'holds a token of this service, which others would read', 'token_found');
}

const textOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);

/** The guard of one request; undefined where nothing is handed in, or by people. What goes to a provider is handed in too. */
export function tokenGuard(
  settings: readonly string[],
  { audience, method }: Endpoint,
  req: Request,
  pathValues: Readonly<Record<string, string | undefined>>,
  db: Queries,
): TokenGuard | undefined {
  if (method === 'get' || !HANDED_IN.has(audience)) return undefined;
  const known: string[] = [...settings, bearerToken(req) ?? []].flat();
  let organizationId = pathValues['organizationId'] ?? req.get('x-organization-id');

  function learn(leaseToken: string | undefined, runId: string | undefined): void {
    if (leaseToken !== undefined) known.push(...tokensOfLease(leaseToken, runId ?? pathValues['runId']));
  }

  /** A path may lead over a name that is a token itself. */
  function refusal({ path }: PlacedText): Problem {
    const place = path();
    return tokenFound(containsAny(place, known) || digestsOf(place).size > 0 ? '' : place);
  }

  async function check(value: unknown): Promise<void> {
    const suspects = new Map<string, PlacedText>();
    for (const placed of textsOf(value)) {
      if (containsAny(placed.text, known)) throw refusal(placed);
      for (const digest of digestsOf(placed.text)) if (!suspects.has(digest)) suspects.set(digest, placed);
    }
    if (suspects.size === 0) return;
    const tenant = uuidFormat.safeParse(organizationId).data;
    const { held } = await call(
      db,
      'tokens_held',
      { organizationId: tenant, hashes: [...suspects.keys()] },
      heldSchema,
    );
    const [found] = held.flatMap((digest) => suspects.get(digest) ?? []);
    if (found) throw refusal(found);
  }

  learn(audience === 'worker' ? req.get('x-lease-token') : undefined, undefined);
  return {
    checkUrl: check,
    async checkBody(value) {
      if (audience !== 'worker' || typeof value !== 'object' || value === null) return check(value);
      const { leaseToken, ...rest } = value as Record<string, unknown>;
      learn(textOf(leaseToken), textOf(rest['runId']));
      organizationId ??= textOf(rest['organizationId']);
      // By which the call is fenced: there it belongs, and where it is no text it is refused as such.
      return check(rest);
    },
    async checkContinued(field, text, before) {
      if (!HEX_START.test(text) && !mayEndToken(text, known)) return;
      const overlap = Math.max(LONGEST_FORM, ...known.map((token) => token.length)) - 1;
      await check({ [field]: (await before()).slice(-overlap) + text });
    },
    search() {
      const { next } = byteSearch(known);
      return (chunk) => (next(chunk) ? tokenFound('') : undefined);
    },
  };
}
