export { parseExpression } from './expression.ts';
export { nextFire } from './next_fire.ts';
