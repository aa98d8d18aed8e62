/**
 * Shapes of secrets that must not be kept in logs. Wide on purpose: a refused log line costs less than a leaked key. None may
 * begin inside of what it has read in vain before: that would take time by the square of the text.
 */
const SHAPES: readonly RegExp[] = [
  /-----BEGIN [A-Z ]*PRIVATE KEY/,
  /\b(?:bearer|basic)\s+[\w.~+/=-]{16,}/i,
  // Keys of providers that are known by their prefix.
  /\bsk-[A-Za-z0-9_-]{16,}/,
  /\b[rsp]k_(?:live|test)_[A-Za-z0-9]{10,}/,
  /\b(?:ghp|gho|ghu|ghs|ghr)_[A-Za-z0-9]{20,}/,
  /\bgithub_pat_[A-Za-z0-9_]{20,}/,
  /\bglpat-[A-Za-z0-9_-]{16,}/,
  /\bxox[abeoprs]-[A-Za-z0-9-]{10,}/,
  /\bxapp-[A-Za-z0-9-]{10,}/,
  /\b(?:AKIA|ASIA)[A-Z0-9]{16}\b/,
  /\bAIza[A-Za-z0-9_-]{30,}/,
  /\bya29\.[A-Za-z0-9_-]{20,}/,
  /\bnpm_[A-Za-z0-9]{30,}/,
  /\bhf_[A-Za-z0-9]{20,}/,
  /\bdop_v1_[a-f0-9]{40,}/,
  /\bshp(?:at|ss|ca|pa)_[a-fA-F0-9]{20,}/,
  /\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}/,
  // JSON web tokens, found by their first dot: `eyJ-eyJ-…` would be read again from each of its hyphens on.
  /(?<=\beyJ[A-Za-z0-9_-]{8,})\.[A-Za-z0-9_-]{8,}\./,
  // A password in a URL, found by what follows the scheme, or a named secret with a value.
  /(?<=[a-z0-9+.-]):\/\/[^\s/:@]+:[^\s/@]+@/i,
  /\b(?:password|passwd|secret|api[_-]?key|access[_-]?token|client[_-]?secret)["']?\s*[:=]\s*["']?[^\s"']{6,}/i,
];

/** True when a text looks like it carries a credential: a private key, a bearer token, a key with a known prefix. */
export function carriesCredential(text: string): boolean {
  return SHAPES.some((shape) => shape.test(text));
}
