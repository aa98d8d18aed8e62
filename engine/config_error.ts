/** Where a setting is wrong: one line that names it. The process prints `message` and exits with 78 (EX_CONFIG). */
export class ConfigError extends Error {
  override name = 'ConfigError';
}
