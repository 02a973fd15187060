// What a box with a file-system view of its own sees: an allow-list of the host, its own folders, and nothing else.
import { existsSync, lstatSync, readdirSync, readFileSync, readlinkSync, realpathSync } from 'node:fs'
import { chmod, mkdir, writeFile } from 'node:fs/promises'
import { join, sep } from 'node:path'
import type { BoxPaths } from './machine-file.ts'
import { RUNTIME_FILES } from './runtime.ts'

export type Mount =
  | { kind: 'ro'; from: string; at: string }
  | { kind: 'rw'; from: string; at: string }
  | { kind: 'link'; to: string; at: string }
  | { kind: 'empty'; at: string }

/** Where things are inside. */
export const INSIDE = {
  home: '/home/box',
  state: '/var/lib/boxwood',
  runtime: '/run/boxwood/agent',
  node: '/run/boxwood/bin/node',
  init: `/run/boxwood/agent/${RUNTIME_FILES.init}`,
  agent: `/run/boxwood/agent/${RUNTIME_FILES.agent}`,
} as const

/** The uid of the box user where a user namespace maps it. */
export const MAPPED_UID = 1000

const ROOT_FOLDERS = ['/usr', '/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32', '/opt', '/nix']
const ETC = [
  'alternatives bash.bashrc bashrc bash_completion.d ca-certificates ca-certificates.conf crypto-policies',
  'debian_version default/locale environment.d fonts gai.conf gitconfig host.conf inputrc java-17-openjdk',
  'java-21-openjdk ld.so.cache ld.so.conf ld.so.conf.d locale.alias locale.conf localtime lsb-release magic',
  'mime.types networks nsswitch.conf os-release perl pki/ca-trust pki/tls/cert.pem pki/tls/certs profile',
  'profile.d protocols python3 redhat-release resolv.conf rpc services shells skel ssl/cert.pem ssl/certs',
  'ssl/openssl.cnf terminfo timezone vim xdg',
].flatMap((line) => line.split(' '))

export type ViewInput = {
  paths: BoxPaths
  /** Never seen, nor is the data folder. */
  projectRoot: string
  dataDir: string
  /** Made by buildRuntime. */
  runtimeDir: string
  nodePath: string
}

/** The mounts in the order in which they are made; /proc, /dev and an empty root are made by the level itself. */
export function boxView({ paths, projectRoot, runtimeDir, nodePath, dataDir }: ViewInput): Mount[] {
  const mounts: Mount[] = []
  for (const at of ROOT_FOLDERS) {
    if (!existsSync(at)) continue
    if (lstatSync(at).isSymbolicLink()) mounts.push({ kind: 'link', to: readlinkSync(at), at })
    else mounts.push({ kind: 'ro', from: at, at })
  }
  mounts.push(...masks([projectRoot, dataDir]))
  for (const name of ETC) {
    const host = join('/etc', name)
    // The real path: resolv.conf and localtime are often links to what a box does not have.
    if (existsSync(host)) mounts.push({ kind: 'ro', from: realpathSync(host), at: host })
  }
  for (const name of readdirSync(paths.etc)) {
    mounts.push({ kind: 'ro', from: join(paths.etc, name), at: join('/etc', name) })
  }
  const cpus = '/sys/devices/system/cpu'
  if (existsSync(cpus)) mounts.push({ kind: 'ro', from: cpus, at: cpus })
  mounts.push(
    { kind: 'ro', from: runtimeDir, at: INSIDE.runtime },
    { kind: 'ro', from: realpathSync(nodePath), at: INSIDE.node },
    { kind: 'link', to: '/run', at: '/var/run' },
    { kind: 'rw', from: paths.tmp, at: '/tmp' },
    { kind: 'rw', from: paths.varTmp, at: '/var/tmp' },
    { kind: 'rw', from: paths.home, at: INSIDE.home },
    { kind: 'rw', from: paths.state, at: INSIDE.state },
  )
  return mounts
}

const isInside = (path: string, folder: string): boolean => path === folder || path.startsWith(folder + sep)

/** A project or data folder under /opt or /usr would come with them: an empty folder hides it. */
function masks(hidden: string[]): Mount[] {
  const real = [...new Set(hidden.map((path) => realpathSync(path)))]
  return real
    .filter((path) => ROOT_FOLDERS.some((folder) => path !== folder && isInside(path, folder)))
    .filter((path) => !real.some((other) => other !== path && isInside(path, other)))
    .map((at) => ({ kind: 'empty', at }))
}

/** Writes the box's own parts of /etc. `uid` is the one the box user has inside. */
export async function writeEtc(paths: BoxPaths, hostname: string, uid: number): Promise<void> {
  const shell = existsSync('/bin/bash') ? '/bin/bash' : '/bin/sh'
  const hosts = existsSync('/etc/hosts') ? readFileSync('/etc/hosts', 'utf8') : '127.0.0.1 localhost\n'
  const files = {
    passwd: `root:x:0:0:root:/:/usr/sbin/nologin\nbox:x:${uid}:${uid}:box:${INSIDE.home}:${shell}\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n`,
    group: `root:x:0:\ntty:x:5:\nbox:x:${uid}:\nnogroup:x:65534:\n`,
    hostname: `${hostname}\n`,
    hosts: `${hosts.trimEnd()}\n127.0.1.1 ${hostname}\n`,
  }
  await mkdir(paths.etc, { recursive: true, mode: 0o755 })
  for (const [name, text] of Object.entries(files)) {
    await writeFile(join(paths.etc, name), text)
    // Whatever the coordinator's umask is, the box user reads these.
    await chmod(join(paths.etc, name), 0o644)
  }
}
