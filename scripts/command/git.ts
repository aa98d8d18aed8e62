import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import type { AgentContext } from './agent.ts';
import { CommandError, EXIT, type Exit, usageError } from './errors.ts';
import { shellWord } from './output.ts';

const REPOSITORY = /^[A-Za-z0-9][A-Za-z0-9-]{0,38}\/[A-Za-z0-9_.-]{1,100}$/;
/** The gateway looks at the password alone. */
const USERNAME = 'agent';

/**
 * Settings of git for everything below the gateway's address. The empty helper comes first: it takes away those of the machine,
 * which would keep the capability.
 */
function settingsOf(url: string, helper: string): string[] {
  const name = `credential.${url}.helper`;
  return [`${name}=`, `${name}=!${helper}`];
}

/** Clones a repository into a folder, or says how; later fetches and pushes in the clone work as well. */
export async function git(
  context: AgentContext,
  [key = '', repository = '', folder]: readonly string[],
): Promise<Exit> {
  const { capabilities, output, values, stop, environment } = context;
  if (!REPOSITORY.test(repository)) throw usageError('git takes OWNER/REPO, as in acme/shop');
  const gateway = await capabilities.resolve(key, 'git');
  const url = `${gateway.url}/${repository}`;
  const given = [`--url=${values.url ?? ''}`, `--org=${values.org ?? ''}`].filter((option) => !option.endsWith('='));
  const helper = ['business-runner', 'git-credential', key, ...given].map(shellWord).join(' ');
  const settings = settingsOf(gateway.url, helper);
  const args = ['clone', ...settings.flatMap((setting) => ['--config', setting]), '--', url];
  if (folder === undefined) {
    if (output.json) output.value({ url, settings, command: ['git', ...args] });
    else output.line(['git', ...args].map(shellWord).join(' '));
    return EXIT.done;
  }
  const child = spawn('git', [...args, folder], {
    // Its output is progress; what the command prints is JSON or nothing.
    stdio: ['ignore', 2, 2],
    env: { ...environment, GIT_TERMINAL_PROMPT: '0' },
    signal: stop.signal,
  });
  const [status] = await once(child, 'exit').catch((error: NodeJS.ErrnoException) => {
    stop.signal.throwIfAborted();
    throw new CommandError(EXIT.unavailable, `git cannot be started (${error.code})`);
  });
  if (status !== 0) throw new CommandError(EXIT.refused, `git clone ended with exit status ${status}`);
  if (output.json) output.value({ url, settings, folder });
  return EXIT.done;
}

/** A helper of git (gitcredentials): says the capability to whoever asks for the gateway, and keeps nothing. */
export async function gitCredential(context: AgentContext, [key = '', verb = '']: readonly string[]): Promise<Exit> {
  if (verb !== 'get') return EXIT.done;
  const asked = new Map(
    (await text(process.stdin)).split('\n').map((line): [string, string] => {
      const at = line.indexOf('=');
      return [line.slice(0, at), line.slice(at + 1)];
    }),
  );
  const gateway = await context.capabilities.resolve(key, 'git');
  const { protocol, host } = new URL(gateway.url);
  if (`${asked.get('protocol')}:` === protocol && asked.get('host') === host) {
    context.output.text(`username=${USERNAME}\npassword=${gateway.capability}\n`);
  }
  return EXIT.done;
}
