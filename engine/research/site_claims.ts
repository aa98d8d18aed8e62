import type { Page } from '../website/index.ts';
import { type Claim, MAX_CLAIM_LENGTH } from './claims.ts';

/** What a page says about itself in its head: known without a model, and quoted as what it is. */
export function siteClaims(page: Page, sourceId: string): Claim[] {
  const claims: string[] = [];
  const { host, pathname } = new URL(page.url);
  const name = pathname === '/' ? host : `${host}${pathname.slice(0, 200)}`;
  if (page.title !== null) claims.push(`The title of ${name} is “${page.title}”.`);
  if (page.description !== null) claims.push(`${name} describes itself: “${page.description}”`);
  return claims.map((claim) => ({ claim: claim.slice(0, MAX_CLAIM_LENGTH).toWellFormed(), sourceIds: [sourceId] }));
}
