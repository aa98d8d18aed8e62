import ipaddr from 'ipaddr.js';

/** Unicast by its number, and still the host's own: Azure's metadata and DNS. */
const INTERNAL = new Set(['168.63.129.16']);
/** All of IPv6 that IANA gives out; forms that carry an IPv4 address (mapped, NAT64, compatible) lie outside. */
const GLOBAL_UNICAST = ipaddr.IPv6.parseCIDR('2000::/3');

/**
 * True for addresses of the public internet alone. Loopback, link-local (cloud metadata with it), private, unique-local,
 * shared, multicast, reserved and documentation ranges are not, nor are IPv6 forms that stand for an IPv4 address:
 * mapped, compatible, translated (NAT64), 6to4, Teredo. What cannot be read is none.
 */
export function isPublicAddress(address: string): boolean {
  if (!ipaddr.isValid(address)) return false;
  const parsed = ipaddr.parse(address);
  if (parsed.range() !== 'unicast' || INTERNAL.has(parsed.toString())) return false;
  return parsed instanceof ipaddr.IPv4 || (parsed as ipaddr.IPv6).match(GLOBAL_UNICAST);
}
