/**
 * What a process of a test gets of our environment: no setting of the person who tests, but the folder of compiled code, with
 * which it starts in half the time. It asks nobody for rates of currencies.
 */
export function bareEnvironment(settings: NodeJS.ProcessEnv = {}): NodeJS.ProcessEnv {
  const { PATH, NODE_COMPILE_CACHE } = process.env;
  const cache = NODE_COMPILE_CACHE === undefined ? {} : { NODE_COMPILE_CACHE };
  return { PATH, ...cache, CURRENCY_RATES: 'off', INSIGHT_UNITS: '0', ...settings };
}
