const DEFAULT_PORT = '3000';

/** The API on this machine, by the settings with which it was started. */
export function localUrl(settings: NodeJS.ProcessEnv): string {
  const port = settings['PORT'] && settings['PORT'] !== '0' ? settings['PORT'] : DEFAULT_PORT;
  const host = settings['HOST'] || '127.0.0.1';
  // What listens on every address is reached on this machine's own.
  const reached = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host;
  return `http://${reached.includes(':') ? `[${reached}]` : reached}:${port}`;
}
