#!/usr/bin/env node
// The command as npx finds it, on whatever Node the machine has (20 or newer): plain JavaScript, nothing imported but Node itself.
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, realpathSync } from 'node:fs';
import module from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const NODE_NEEDED = 24;
const root = path.resolve(path.dirname(realpathSync(fileURLToPath(import.meta.url))), '..', '..');
const main = path.join(root, 'scripts', 'command', 'main.ts');

if (!existsSync(path.join(root, 'node_modules', '.package-lock.json'))) {
  // Its standard output is for what the command prints.
  const { status } = spawnSync(process.execPath, [path.join(root, 'scripts', 'bootstrap.mjs')], {
    cwd: root,
    stdio: ['ignore', 2, 2],
  });
  if (status !== 0) process.exit(status ?? 1);
}

// Compiled code is kept from call to call. Where the folder may not be written to, it is not.
const compiled = path.join(root, 'node_modules', '.cache', 'compiled');

if (Number.parseInt(process.versions.node, 10) >= NODE_NEEDED) {
  module.enableCompileCache(compiled);
  await import(main);
} else {
  const child = spawn(path.join(root, 'node_modules', '.bin', 'node'), [main, ...process.argv.slice(2)], {
    stdio: 'inherit',
    env: { NODE_COMPILE_CACHE: compiled, ...process.env },
  });
  // A terminal sends Ctrl-C to both; the other one says what it means and how it ends.
  process.on('SIGINT', () => {});
  process.on('SIGTERM', () => child.kill('SIGTERM'));
  child.once('error', () => {
    process.stderr.write(
      `business-runner: Node.js ${NODE_NEEDED} is needed, and this is ${process.versions.node}; npm start brings one\n`,
    );
    process.exitCode = 1;
  });
  child.once('exit', (code, signal) => {
    process.exitCode = code ?? (signal === 'SIGINT' ? 130 : 143);
  });
}
