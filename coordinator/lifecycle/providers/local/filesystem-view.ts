// The file-system view of a namespaced box: an allow-list of host paths, the box's own directories, nothing else.
import { existsSync, lstatSync, readdirSync, readFileSync, readlinkSync, realpathSync } from 'node:fs'
import { chmod, mkdir, writeFile } from 'node:fs/promises'
import { join, sep } from 'node:path'
import type { BoxPaths } from './machine-file.ts'
import { RUNTIME_FILES } from './runtime.ts'

/** `path` is in the box, `source` on the host. A tmpfs is empty and read-only. */
export type Mount =
  | { kind: 'ro'; source: string; path: string }
  | { kind: 'rw'; source: string; path: string }
  | { kind: 'symlink'; target: string; path: string }
  | { kind: 'tmpfs'; path: string }

/** Paths as the box sees them. */
export const VIEW_PATHS = {
  home: '/home/box',
  state: '/var/lib/boxwood',
  runtime: '/run/boxwood/agent',
  node: '/run/boxwood/bin/node',
  init: `/run/boxwood/agent/${RUNTIME_FILES.init}`,
  agent: `/run/boxwood/agent/${RUNTIME_FILES.agent}`,
} as const

/** The uid of the box user in a user namespace. */
export const MAPPED_UID = 1000

const SYSTEM_DIRS = ['/usr', '/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32', '/opt', '/nix']
const ETC_FILES = [
  'alternatives bash.bashrc bashrc bash_completion.d ca-certificates ca-certificates.conf crypto-policies',
  'debian_version default/locale environment.d fonts gai.conf gitconfig host.conf inputrc java-17-openjdk',
  'java-21-openjdk ld.so.cache ld.so.conf ld.so.conf.d locale.alias locale.conf localtime lsb-release magic',
  'mime.types networks nsswitch.conf os-release perl pki/ca-trust pki/tls/cert.pem pki/tls/certs profile',
  'profile.d protocols python3 redhat-release resolv.conf rpc services shells skel ssl/cert.pem ssl/certs',
  'ssl/openssl.cnf terminfo timezone vim xdg',
].flatMap((line) => line.split(' '))

export type MountListInput = {
  paths: BoxPaths
  /** Hidden from the box, like the data directory. */
  projectRoot: string
  dataDir: string
  /** Created by buildRuntime. */
  runtimeDir: string
  nodePath: string
}

/** The mounts of the view, in mount order. The isolation level itself mounts the empty root, /proc and /dev. */
export function buildMountList({
  paths,
  projectRoot,
  runtimeDir,
  nodePath,
  dataDir,
}: MountListInput): Mount[] {
  const mounts: Mount[] = []
  for (const path of SYSTEM_DIRS) {
    if (!existsSync(path)) continue
    if (lstatSync(path).isSymbolicLink()) mounts.push({ kind: 'symlink', target: readlinkSync(path), path })
    else mounts.push({ kind: 'ro', source: path, path })
  }
  mounts.push(...hideDirectories([projectRoot, dataDir]))
  for (const name of ETC_FILES) {
    const path = join('/etc', name)
    // Resolve symlinks: resolv.conf and localtime often link to files outside the view.
    if (existsSync(path)) mounts.push({ kind: 'ro', source: realpathSync(path), path })
  }
  for (const name of readdirSync(paths.etc)) {
    mounts.push({ kind: 'ro', source: join(paths.etc, name), path: join('/etc', name) })
  }
  const cpus = '/sys/devices/system/cpu'
  if (existsSync(cpus)) mounts.push({ kind: 'ro', source: cpus, path: cpus })
  mounts.push(
    { kind: 'ro', source: runtimeDir, path: VIEW_PATHS.runtime },
    { kind: 'ro', source: realpathSync(nodePath), path: VIEW_PATHS.node },
    { kind: 'symlink', target: '/run', path: '/var/run' },
    { kind: 'rw', source: paths.tmp, path: '/tmp' },
    { kind: 'rw', source: paths.varTmp, path: '/var/tmp' },
    { kind: 'rw', source: paths.home, path: VIEW_PATHS.home },
    { kind: 'rw', source: paths.state, path: VIEW_PATHS.state },
  )
  return mounts
}

const isInside = (path: string, dir: string): boolean => path === dir || path.startsWith(dir + sep)

/** A project or data directory inside a system directory such as /opt would be visible: covers it with a tmpfs. */
function hideDirectories(dirs: string[]): Mount[] {
  const realDirs = [...new Set(dirs.map((dir) => realpathSync(dir)))]
  return realDirs
    .filter((dir) => SYSTEM_DIRS.some((systemDir) => dir !== systemDir && isInside(dir, systemDir)))
    .filter((dir) => !realDirs.some((other) => other !== dir && isInside(dir, other)))
    .map((path) => ({ kind: 'tmpfs', path }))
}

/** Writes the box's own files of /etc. `uid` is the box user's uid as the box sees it. */
export async function writeEtcFiles(paths: BoxPaths, hostname: string, uid: number): Promise<void> {
  const shell = existsSync('/bin/bash') ? '/bin/bash' : '/bin/sh'
  const hosts = existsSync('/etc/hosts') ? readFileSync('/etc/hosts', 'utf8') : '127.0.0.1 localhost\n'
  const files = {
    passwd: `root:x:0:0:root:/:/usr/sbin/nologin\nbox:x:${uid}:${uid}:box:${VIEW_PATHS.home}:${shell}\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n`,
    group: `root:x:0:\ntty:x:5:\nbox:x:${uid}:\nnogroup:x:65534:\n`,
    hostname: `${hostname}\n`,
    hosts: `${hosts.trimEnd()}\n127.0.1.1 ${hostname}\n`,
  }
  await mkdir(paths.etc, { recursive: true, mode: 0o755 })
  for (const [name, text] of Object.entries(files)) {
    await writeFile(join(paths.etc, name), text)
    // Independent of the coordinator's umask: the box user reads these files.
    await chmod(join(paths.etc, name), 0o644)
  }
}
