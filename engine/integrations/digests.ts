import { createHash, randomBytes } from 'node:crypto';

const digest = (...parts: readonly string[]) => createHash('sha256').update(parts.join('\n')).digest('hex');

/** What an account is compared by. */
export function subjectHash(provider: string, subject: string): string {
  return digest('subject', provider, subject);
}

/** What an authorization at a provider is compared by: of one person to one client of this deployment. */
export function grantHash(grant: string, clientId: string, subject: string): string {
  return digest('grant', grant, clientId, subject);
}

/** What a flow is found by: tickets, states and request tokens are stored as this. */
export function secretHash(secret: string): string {
  return createHash('sha256').update(secret).digest('hex');
}

export function newSecret(): string {
  return randomBytes(32).toString('base64url');
}
