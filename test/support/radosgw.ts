import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import path from 'node:path';
import { promisify } from 'node:util';
import type { S3Settings } from '../../engine/storage/index.ts';
import type { TearDown } from './database.ts';
import { openFolder } from './folders.ts';
import { until } from './wait.ts';

const run = promisify(execFile);
const BINARIES = '/usr/bin';
const NEEDED = ['radosgw', 'radosgw-admin', 'ceph', 'ceph-mon', 'ceph-osd', 'ceph-authtool', 'monmaptool'];
const START_WITHIN_MS = 90_000;

/** Whether this machine has Ceph with its object gateway (Debian: radosgw, ceph-mon, ceph-osd). */
export function hasRadosgw(): boolean {
  return NEEDED.every((name) => existsSync(path.join(BINARIES, name)));
}

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

const MiB = 1024 * 1024;

function configuration(folder: string, cluster: string, monitor: string, storeBytes: number): string {
  return `[global]
fsid = ${cluster}
mon host = ${monitor}
auth cluster required = cephx
auth service required = cephx
auth client required = cephx
keyring = ${folder}/keyring
admin socket =
log file =
pid file =
run dir = ${folder}
public addr = 127.0.0.1
cluster addr = 127.0.0.1
mon data = ${folder}/mon
mon data avail crit = 1
mon allow pool size one = true
osd data = ${folder}/osd
osd objectstore = memstore
memstore device bytes = ${storeBytes}
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 1
osd crush chooseleaf type = 0
rgw data = ${folder}/rgw
`;
}

export type Radosgw = Readonly<{ endpoint: string; settings: S3Settings }>;

/** A Ceph cluster of one monitor, one store in memory and the gateway: a real S3 server that checks signatures. */
export async function startRadosgw(t: TearDown, storeBytes = 1024 * MiB): Promise<Radosgw> {
  const folder = await openFolder(t);
  const [monitorPort, port] = [await freePort(), await freePort()];
  const monitor = `[v2:127.0.0.1:${monitorPort}/0]`;
  const [cluster, osd] = [randomUUID(), randomUUID()];
  const config = path.join(folder, 'ceph.conf');
  await writeFile(config, configuration(folder, cluster, monitor, storeBytes));
  for (const name of ['mon', 'osd', 'rgw']) await mkdir(path.join(folder, name));

  const call = (name: string, ...args: string[]) =>
    run(path.join(BINARIES, name), args, { cwd: folder, timeout: START_WITHIN_MS });
  const children: ChildProcess[] = [];
  let output = '';
  const serve = (name: string, ...args: string[]) => {
    const child = spawn(path.join(BINARIES, name), ['-c', config, '-f', ...args], {
      cwd: folder,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += chunk));
    children.push(child);
  };
  t.teardown(async () => {
    // The folder goes only when nobody writes into it.
    for (const child of children.reverse()) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      const ended = once(child, 'exit');
      child.kill('SIGKILL');
      await ended;
    }
  });

  const allow = (...who: string[]) => who.flatMap((name) => ['--cap', name, 'allow *']);
  const key = ['--gen-key', '-n'];
  await call('ceph-authtool', '--create-keyring', 'keyring', ...key, 'mon.', ...allow('mon'));
  await call('ceph-authtool', 'keyring', ...key, 'client.admin', ...allow('mon', 'osd', 'mgr'));
  await call('ceph-authtool', 'keyring', ...key, 'osd.0', ...allow('mon', 'osd'));
  await call('monmaptool', '--create', '--fsid', cluster, '--addv', 'a', monitor, 'monmap');
  await call('ceph-mon', '-c', config, '--mkfs', '-i', 'a', '--keyring', 'keyring', '--monmap', 'monmap');
  serve('ceph-mon', '-i', 'a');
  await call('ceph', '-c', config, 'osd', 'new', osd, '0');
  await call('ceph-osd', '-c', config, '-i', '0', '--mkfs', '--osd-uuid', osd);
  serve('ceph-osd', '-i', '0');
  const [accessKeyId, secretAccessKey] = ['ACCESSKEYOFTESTS', 'secret/of+the=tests'];
  const user = ['--uid=test', '--display-name=test', `--access-key=${accessKeyId}`, `--secret-key=${secretAccessKey}`];
  await call('radosgw-admin', '-c', config, 'user', 'create', ...user);
  serve('radosgw', '-n', 'client.admin', `--rgw-frontends=beast endpoint=127.0.0.1:${port}`);
  const endpoint = `http://127.0.0.1:${port}`;
  const responds = () => fetch(endpoint).then((response) => response.body?.cancel().then(() => true) ?? true);
  await until('radosgw', () => responds().catch(() => false), START_WITHIN_MS).catch((error) => {
    throw new Error(output, { cause: error });
  });
  return { endpoint, settings: { credentials: { accessKeyId, secretAccessKey } } };
}
