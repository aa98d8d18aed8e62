export { parseExpression } from './expression.ts';
export { nextFire } from './next_fire.ts';
export { openZone } from './zone.ts';
export { zoneName, zoneOffsets, zonesLike, zonesMeant } from './zone_name.ts';
