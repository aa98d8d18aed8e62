// A server of git on loopback: `git http-backend`, behind a token, in place of a provider.
import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import type { TearDown } from './database.ts';
import { bareEnvironment } from './environment.ts';
import { openFolder } from './folders.ts';

/** Git of a test: nothing of the person who tests, and nobody is asked. */
export const gitEnvironment = () =>
  bareEnvironment({
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_CONFIG_GLOBAL: '/dev/null',
    GIT_TERMINAL_PROMPT: '0',
    GIT_ASKPASS: '/bin/false',
    GIT_AUTHOR_NAME: 'Ada',
    GIT_AUTHOR_EMAIL: 'ada@example.com',
    GIT_COMMITTER_NAME: 'Ada',
    GIT_COMMITTER_EMAIL: 'ada@example.com',
    HOME: '/nonexistent',
    LC_ALL: 'C',
  });

export type GitResult = Readonly<{ code: number; stdout: string; stderr: string }>;

/** Runs git as a person does. */
export function git(folder: string, ...args: readonly string[]): Promise<GitResult> {
  const child = spawn('git', args, { cwd: folder, env: gitEnvironment(), stdio: ['ignore', 'pipe', 'pipe'] });
  const read = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (text: string) => {
      read[name] += text;
    });
  }
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => resolve({ code: code ?? -1, ...read }));
  });
}

/** As `git`, of a command that has to succeed. @returns its output, without the white space around it */
export async function gitDone(folder: string, ...args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await git(folder, ...args);
  if (code !== 0) throw new Error(`git ${args.join(' ')} ended with ${code}: ${stderr}`);
  return stdout.trim();
}

export type OriginCall = Readonly<{ method: string; url: string; headers: IncomingMessage['headers'] }>;

export type GitOrigin = Readonly<{
  origin: string;
  /** What was asked for, oldest first. */
  calls: OriginCall[];
  /** Responds in place of git; returns true where it did. */
  faults: { reply: ((call: OriginCall, req: IncomingMessage, res: ServerResponse) => boolean) | undefined };
  /** A new repository; its default branch is `main`. @returns its folder */
  create(name: string): string;
}>;

function backend(root: string, req: IncomingMessage, res: ServerResponse): void {
  const url = new URL(req.url ?? '/', 'http://origin');
  const child = spawn('git', ['http-backend'], {
    env: {
      ...gitEnvironment(),
      GIT_PROJECT_ROOT: root,
      GIT_HTTP_EXPORT_ALL: '1',
      PATH_INFO: url.pathname,
      QUERY_STRING: url.search.slice(1),
      REQUEST_METHOD: req.method ?? 'GET',
      CONTENT_TYPE: req.headers['content-type'] ?? '',
      HTTP_CONTENT_ENCODING: String(req.headers['content-encoding'] ?? ''),
      GIT_PROTOCOL: String(req.headers['git-protocol'] ?? ''),
      REMOTE_USER: 'x-access-token',
    },
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  child.stdin.on('error', () => {});
  req.pipe(child.stdin);
  res.once('close', () => child.kill('SIGKILL'));
  let head = Buffer.alloc(0);
  const onHead = (chunk: Buffer) => {
    head = Buffer.concat([head, chunk]);
    const end = head.indexOf('\r\n\r\n');
    if (end < 0) return;
    child.stdout.off('data', onHead);
    for (const line of head.toString('latin1', 0, end).split('\r\n')) {
      const colon = line.indexOf(':');
      const [name, value] = [line.slice(0, colon), line.slice(colon + 1).trim()];
      if (name.toLowerCase() === 'status') res.statusCode = Number.parseInt(value, 10);
      else res.setHeader(name, value);
    }
    res.write(head.subarray(end + 4));
    child.stdout.pipe(res);
  };
  child.stdout.on('data', onHead);
}

/** `token`: what it takes as the password of `x-access-token`. */
export async function openGitOrigin(t: TearDown, token: string): Promise<GitOrigin> {
  const root = await openFolder(t);
  const calls: OriginCall[] = [];
  const faults: GitOrigin['faults'] = { reply: undefined };
  const expected = `Basic ${Buffer.from(`x-access-token:${token}`).toString('base64')}`;
  const server = createServer((req, res) => {
    const call = { method: req.method ?? '', url: req.url ?? '', headers: req.headers };
    calls.push(call);
    if (faults.reply?.(call, req, res)) return;
    if (req.headers.authorization === expected) backend(root, req, res);
    else {
      req.resume();
      res.writeHead(401, { 'www-authenticate': 'Basic realm="origin"' }).end();
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    server.closeAllConnections();
    return new Promise<void>((resolve) => server.close(() => resolve()));
  });
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    calls,
    faults,
    create(name) {
      const folder = path.join(root, `${name}.git`);
      mkdirSync(folder, { recursive: true });
      const run = (...args: string[]) => execFileSync('git', args, { cwd: folder, env: gitEnvironment() });
      run('init', '--quiet', '--bare', '--initial-branch=main', '.');
      run('config', 'http.receivepack', 'true');
      return folder;
    },
  };
}

/** So many branches, `b0` and on, each with a commit of its own. */
export async function importCommits(folder: string, count: number): Promise<void> {
  const commits = Array.from({ length: count }, (_, number) =>
    [
      `commit refs/heads/b${number}`,
      'committer Ada <ada@example.com> 1700000000 +0000',
      `data ${String(number).length}`,
    ]
      .join('\n')
      .concat(`\n${number}\nM 644 inline f.txt\ndata ${String(number).length}\n${number}\n`),
  );
  const child = spawn('git', ['fast-import', '--quiet'], {
    cwd: folder,
    env: gitEnvironment(),
    stdio: ['pipe', 'ignore', 'inherit'],
  });
  child.stdin.end(commits.join('\n'));
  await new Promise<void>((resolve, reject) => {
    child.once('close', (code) => (code === 0 ? resolve() : reject(new Error(`git fast-import ended with ${code}`))));
  });
}
